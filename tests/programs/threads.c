/* threads.c - 8 threads that make calls at the same time.
 * Usage: threads [N], default 100.
 * Certain calls: 8 clone/clone3; in each of the 8 threads N getppid and N nanosleep of 1 ns; the main thread joins all
 * and prints the number of calls that the threads made (8*N*2). */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 8 };
static long rounds = 100;

static void *work(void *unused)
{
    struct timespec instant = { 0, 1 };
    (void)unused;
    for (long i = 0; i < rounds; i++) {
        syscall(SYS_getppid);
        syscall(SYS_nanosleep, &instant, NULL);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    if (argc > 1)
        rounds = atol(argv[1]);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, NULL) != 0)
            return 1;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("%ld\n", THREADS * rounds * 2);
    return 0;
}
