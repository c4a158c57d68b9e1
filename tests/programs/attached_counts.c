// attached_counts.c - for each line on its input, threads make calls of which the number is known, and "done" is printed. Argument: "plant" makes
// what the checkers look for.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALONE __attribute__((noinline, noipa))

static int plant;

ALONE long leaf(long n) { return n * 3 + 7; }
ALONE long middle(long n) { return leaf(n) + leaf(n + 1); }
ALONE long deep(long n) { return n == 0 ? leaf(1) : deep(n - 1) + 1; }
ALONE long only_main(long n) { return leaf(n) * 2; }
ALONE long slow(long n) {
    volatile long sum = 0;
    for (long i = 0; i < n; i++) sum += i;
    return sum;
}
ALONE long quick(long n) { return slow(n) + 1; }
ALONE long loop(void) { return quick(10) + (plant ? slow(20000000) : slow(20)); }

static void *works(void *p) {
    long sum = 0;
    for (int i = 0; i < 1000; i++) sum += middle(i) + deep(9);
    if (plant && p) sum += only_main(1);
    return (void *)sum;
}

int main(int argc, char **argv) {
    char line[100];
    plant = argc > 1 && !strcmp(argv[1], "plant");
    puts("begun");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        pthread_t threads[4];
        long sum = only_main(3) + loop();
        for (long i = 0; i < 4; i++) pthread_create(&threads[i], NULL, works, (void *)i);
        for (int i = 0; i < 4; i++) {
            void *result;
            pthread_join(threads[i], &result);
            sum += (long)result;
        }
        printf("done %s\n", sum ? "" : "wrong");
        fflush(stdout);
    }
    return 0;
}
