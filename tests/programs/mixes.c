// Makes one event of each kind in a round: a call, a function, an allocation, a page fault, a static probe; and time for samples. With a word behind
// the number of rounds, another thread makes rounds until there is something to be read; then the first one makes its own.
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "note.h"

__attribute__((noinline)) long work(long a) {
    __asm__ volatile("");
    return a * 3;
}

__attribute__((noinline)) long probed(long a) {
    __asm__ volatile("");
    return a + 7;
}

static void spend(long ns) {
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    do
        clock_gettime(CLOCK_MONOTONIC, &b);
    while ((b.tv_sec - a.tv_sec) * 1000000000L + b.tv_nsec - a.tv_nsec < ns);
}

static long a_round(long i) {
    long sum = getppid() > 0;
    sum += work(i) == i * 3;
    sum += probed(i) == i + 7;
    char *block = malloc(100 + i % 7);
    __asm__ volatile("" ::"r"(block));
    free(block);
    char *page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    page[5] = 1;
    munmap(page, 4096);
    NOTE2("mixes", "round", "0", i, "x");
    spend(500000);
    return sum;
}

static void *others(void *unused) {
    struct pollfd in = {0, POLLIN, 0};
    while (poll(&in, 1, 0) == 0) a_round(0);
    return unused;
}

int main(int argc, char **argv) {
    pthread_t thread;
    long sum = 0, n = atol(argv[1]);
    if (argc > 2) {
        pthread_create(&thread, 0, others, 0);
        pthread_join(thread, 0);
    }
    for (long i = 0; i < n; i++) sum += a_round(i);
    printf("%ld\n", sum);
}
