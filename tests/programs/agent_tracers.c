// Asks the agent to serve requests for tracers, between calls whose number is known. Argument: the name of a socket, and how often.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "trapline_tracer.h"

__attribute__((noinline)) int leaf(int n) { __asm__ volatile(""); return n * 3 + 7; }
__attribute__((noinline)) int middle(int n) { return leaf(n) + leaf(n + 1) + 1; }
__attribute__((noinline)) long fib(long n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
__attribute__((noinline)) void worker_only(int n) { __asm__ volatile("lea 1(%0), %%eax; nop; nop; nop" : : "r"((long)n) : "eax"); }
__attribute__((noinline)) void main_only(int n) { __asm__ volatile("lea 2(%0), %%eax; nop; nop; nop" : : "r"((long)n) : "eax"); }
__attribute__((noinline)) void slow(int n) {
    for (volatile int i = 0; i < n; i++) {}
}
__attribute__((noinline)) void loop(int n) {
    slow(n);
    slow(1);
}

static unsigned long entered, left, deepest, wrong;
static __thread unsigned open_calls;
static void enter(const struct trapline_function *f, const void *caller, unsigned depth) {
    __atomic_fetch_add(&entered, 1, __ATOMIC_RELAXED);
    if (!f->address || !f->number || !caller) wrong++;
    if (depth > deepest) deepest = depth;
    open_calls++;
    leaf(1); // Not traced: the thread is in a tracer.
}
static void leave(const struct trapline_function *f, unsigned depth) {
    __atomic_fetch_add(&left, 1, __ATOMIC_RELAXED);
    if (!f->address || open_calls == 0) wrong++;
    open_calls--;
    leaf((int)depth);
}
static unsigned long only_left;
static void only(const struct trapline_function *f, unsigned depth) { __atomic_fetch_add(&only_left, 1, __ATOMIC_RELAXED); }

static struct trapline_tracer mine = {1, TRAPLINE_FLAGS, "mine", enter, leave};
static struct trapline_tracer exits = {1, TRAPLINE_FLAGS, "exits", 0, only};

static void *body(void *p) {
    long sum = 0;
    for (int i = 0; i < 100; i++) sum += middle(i);
    worker_only(1);
    if (p) main_only(1);
    return (void *)sum;
}

int main(int argc, char **argv) {
    int rounds = atoi(argv[2]), plant = argc > 3;
    int first = trapline_register(&mine);
    printf("%d %d\n", first, trapline_register(&exits));
    for (int r = 0; r < rounds; r++) {
        trapline_ask(2, argv[1], strlen(argv[1]));
        long sum = fib(15);
        for (int i = 0; i < 100; i++) sum += middle(i);
        pthread_t t[4];
        for (int i = 0; i < 4; i++) pthread_create(&t[i], 0, body, plant ? (void *)1 : 0);
        for (int i = 0; i < 4; i++) {
            void *result;
            pthread_join(t[i], &result);
            sum += (long)result;
        }
        main_only(1);
        loop(plant ? 20000000 : 10);
        printf("%ld %lu %lu %lu %lu %lu %u\n", sum, entered, left, only_left, deepest, wrong, open_calls);
        entered = left = only_left = deepest = 0;
    }
    return 0;
}
