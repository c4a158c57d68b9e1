// Programs that spend their time in short functions whose callers are known: patched_stacks.rs takes samples of them while all functions
// are traced.
//
// patched WAY ROUNDS: fib, sort, throw, tail, jump, deep, signal or threads, so many times.
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <stdexcept>

#define KEEP __attribute__((noinline, noclone))

static thread_local volatile long sink;

extern "C" {

KEEP long spin(long n)
{
    for (long i = 0; i < n; i++)
        sink = sink + i;
    return sink;
}

KEEP long fib(long n)
{
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

KEEP int compare(const void *a, const void *b)
{
    sink = sink + 1;
    return *(const int *)a - *(const int *)b;
}

/// The C library calls back.
KEEP long sort(long n)
{
    int *values = (int *)malloc(n * sizeof *values);
    for (long i = 0; i < n; i++)
        values[i] = (int)((i * 7919) % n);
    qsort(values, n, sizeof *values, compare);
    long first = values[0];
    free(values);
    return first;
}

KEEP void thrower(long n)
{
    if (n == 0)
        throw std::runtime_error("thrown");
    thrower(n - 1);
    sink = sink + 1;
}

KEEP long catcher(long n)
{
    try {
        thrower(n);
    } catch (std::exception &) {
        spin(200);
    }
    return sink;
}

/// Optimised, these are jumps: the functions have one return address.
KEEP long last(long n)
{
    sink = sink + n;
    return spin(50);
}

KEEP long middle(long n)
{
    sink = sink + 1;
    return last(n + 1);
}

KEEP long tail(long n)
{
    sink = sink + 1;
    return middle(n + 1);
}

static thread_local jmp_buf target;

KEEP void jumper(long n)
{
    if (n == 0)
        longjmp(target, 1);
    else
        jumper(n - 1);
    sink = sink + 1;
}

KEEP long lands(long n)
{
    if (setjmp(target) == 0)
        jumper(n);
    return spin(200);
}

KEEP long deep(long n)
{
    return n == 0 ? spin(2000) : deep(n - 1) + 1;
}

KEEP void handler(int)
{
    spin(300);
}

static const struct {
    const char *name;
    long (*work)(long);
    long argument;
} WAYS[] = {
    {"fib", fib, 12},       {"sort", sort, 500}, {"throw", catcher, 5}, {"tail", tail, 1},
    {"jump", lands, 12},    {"deep", deep, 100}, {"signal", fib, 12},   {"threads", fib, 12},
};

static size_t way;
static long rounds;

KEEP void *works(void *)
{
    for (long i = 0; i < rounds; i++)
        sink = sink + WAYS[way].work(WAYS[way].argument);
    return NULL;
}

KEEP void on_a_stack_of_its_own(void)
{
    stack_t stack = {};
    stack.ss_sp = malloc(1 << 16);
    stack.ss_size = 1 << 16;
    sigaltstack(&stack, NULL);
    struct sigaction action = {};
    action.sa_handler = handler;
    action.sa_flags = SA_ONSTACK | SA_RESTART;
    sigaction(SIGALRM, &action, NULL);
    struct itimerval every = {{0, 500}, {0, 500}};
    setitimer(ITIMER_REAL, &every, NULL);
}
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "fib";
    rounds = argc > 2 ? atol(argv[2]) : 1;
    while (strcmp(WAYS[way].name, name))
        way++;
    if (!strcmp(name, "signal"))
        on_a_stack_of_its_own();
    if (strcmp(name, "threads")) {
        works(NULL);
        return 0;
    }
    pthread_t threads[3];
    for (pthread_t &thread : threads)
        pthread_create(&thread, NULL, works, NULL);
    for (pthread_t thread : threads)
        pthread_join(thread, NULL);
    return 0;
}
