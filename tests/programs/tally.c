/* tally.c - counts what it does.
 * Usage: tally THREADS N. Each thread calls worked(i) for i in 0..N and makes a call of getppid after each. Prints how often worked was
 * called and how many calls were made. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static long n;
static long worked_times, calls;

__attribute__((noinline, noipa)) long worked(long i)
{
    return i * 2;
}

static void *work(void *arg)
{
    (void)arg;
    for (long i = 0; i < n; i++) {
        worked(i);
        __atomic_add_fetch(&worked_times, 1, __ATOMIC_RELAXED);
        syscall(SYS_getppid);
        __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
    }
    return 0;
}

int main(int argc, char **argv)
{
    int threads = argc > 1 ? atoi(argv[1]) : 2;
    n = argc > 2 ? atol(argv[2]) : 1000;
    pthread_t t[64];
    for (int i = 0; i < threads && i < 64; i++)
        if (pthread_create(&t[i], 0, work, 0))
            return 1;
    for (int i = 0; i < threads && i < 64; i++)
        pthread_join(t[i], 0);
    printf("%ld %ld\n", worked_times, calls);
    return 0;
}
