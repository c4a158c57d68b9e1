// heap_bench same N       N times malloc and free, 20 frames deep, always by the same stack
// heap_bench distinct N   the same by 100,000 stacks in turn: which two functions call each other is another way at each of 17 levels
// It prints the time of the loop, ns, and how many allocations it has made.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ALONE __attribute__((noipa))
#define STAY __asm__ volatile("" ::: "memory")
enum { DISTINCT = 100000 };

static long rounds, made;

ALONE static void bottom(size_t size) {
    void *block = malloc(size);
    __asm__ volatile("" ::"r"(block) : "memory");
    free(block);
    made++;
}

// The loop is at the bottom: a run measures malloc and free, and no calls.
ALONE static void loop(void) {
    for (long i = 0; i < rounds; i++) bottom((size_t)(i & 255) + 1);
    STAY;
}
ALONE static void descends(int depth) {
    if (depth) descends(depth - 1);
    else loop();
    STAY;
}

// Each level takes a bit of the way: left or right.
ALONE static void right(unsigned way, int depth);
ALONE static void left(unsigned way, int depth) {
    if (!depth) bottom(way & 255);
    else if (way & 1) right(way >> 1, depth - 1);
    else left(way >> 1, depth - 1);
    STAY;
}
ALONE static void right(unsigned way, int depth) {
    if (!depth) bottom(way & 255);
    else if (way & 1) right(way >> 1, depth - 1);
    else left(way >> 1, depth - 1);
    STAY;
}
ALONE static void ways(void) {
    for (long i = 0; i < rounds; i++) left((unsigned)(i % DISTINCT), 17);
    STAY;
}

static long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000 + t.tv_nsec;
}

int main(int argc, char **argv) {
    int distinct = argc > 1 && !strcmp(argv[1], "distinct");
    rounds = argc > 2 ? atol(argv[2]) : 1;
    long start = now();
    // main, 17 levels, loop and bottom: 20 frames. main, ways, 18 levels and bottom: 21.
    if (distinct) ways();
    else descends(16);
    printf("ns %ld allocations %ld\n", now() - start, made);
    return 0;
}
