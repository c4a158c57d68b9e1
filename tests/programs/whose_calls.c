/* whose_calls.c - calls that name their thread and process: lseek(-1, TID, PID), which fails with EBADF.
 * Usage: whose_calls threads THREADS CALLS     so many threads at the same time, each of which makes so many calls
 *        whose_calls processes N CALLS         N processes one after the other, of two threads each; each thread makes so many calls
 *        whose_calls exec N CALLS              a second thread makes so many calls, and executes this program, N times; the last makes
 *                                              them in its main thread
 * In numbers: THREADS * CALLS; 2 * N * CALLS; (N + 1) * CALLS. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_barrier_t all;
static int calls;
static char **again;

static void say(void)
{
    long tid = syscall(SYS_gettid), pid = syscall(SYS_getpid);
    for (int i = 0; i < calls; i++)
        syscall(SYS_lseek, -1, tid, pid);
}

static void *together(void *unused)
{
    pthread_barrier_wait(&all);
    say();
    pthread_barrier_wait(&all);
    return unused;
}

static void *alone(void *unused)
{
    say();
    return unused;
}

static void *become(void *unused)
{
    say();
    execv("/proc/self/exe", again);
    _exit(127);
    return unused;
}

static void start(pthread_t *thread, void *(*function)(void *))
{
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    if (pthread_create(thread, &small, function, NULL))
        abort();
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    int n = atoi(argv[2]);
    calls = atoi(argv[3]);
    if (!strcmp(argv[1], "threads")) {
        pthread_t *threads = calloc(n, sizeof *threads);
        pthread_barrier_init(&all, NULL, n);
        for (int i = 0; i < n; i++)
            start(&threads[i], together);
        for (int i = 0; i < n; i++)
            pthread_join(threads[i], NULL);
    } else if (!strcmp(argv[1], "processes")) {
        for (int i = 0; i < n; i++) {
            if (fork() == 0) {
                pthread_t thread;
                start(&thread, alone);
                say();
                pthread_join(thread, NULL);
                _exit(0);
            }
            wait(NULL);
        }
    } else if (n > 0) {
        char left[16];
        snprintf(left, sizeof left, "%d", n - 1);
        again = (char *[]){ argv[0], argv[1], left, argv[3], NULL };
        pthread_t thread;
        start(&thread, become);
        for (;;)
            pause();
    } else {
        say();
    }
    return 0;
}
