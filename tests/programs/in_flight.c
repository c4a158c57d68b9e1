/* in_flight.c - four threads that stay inside calls, to attach to. Give it a pipe as descriptor 0.
 * Certain calls: three clone/clone3; futex(FUTEX_WAIT) in the second thread, epoll_wait without a timeout in the third,
 * nanosleep of 1000 s in the fourth; when these are blocked, write of "PID\n" to descriptor 1; then read(0, ..., 64) in
 * the main thread. Ends with exit_group(0) on SIGUSR1 or when descriptor 0 is closed; what arrives on it is thrown away. */
#define _GNU_SOURCE
#include "blocked.h"
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static unsigned word;
static volatile int tids[3];

static void on_usr1(int signo)
{
    (void)signo;
    _exit(0);
}

static void *block(void *number)
{
    int which = (int)(long)number;
    struct timespec long_time = { 1000, 0 };
    struct epoll_event event;
    tids[which] = (int)syscall(SYS_gettid);
    if (which == 0)
        syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
    if (which == 1)
        epoll_wait(epoll_create1(0), &event, 1, -1);
    if (which == 2)
        syscall(SYS_nanosleep, &long_time, NULL);
    return NULL;
}

int main(void)
{
    struct sigaction action = { .sa_handler = on_usr1 };
    pthread_t threads[3];
    char line[64];
    sigaction(SIGUSR1, &action, NULL);
    for (long i = 0; i < 3; i++)
        if (pthread_create(&threads[i], NULL, block, (void *)i) != 0)
            return 1;
    for (int i = 0; i < 3; i++) {
        while (tids[i] == 0)
            usleep(1000);
        await_blocked(getpid(), tids[i]);
    }
    int n = snprintf(line, sizeof line, "%d\n", (int)getpid());
    if (write(1, line, (size_t)n) != n)
        return 1;
    while (read(0, line, sizeof line) > 0)
        ;
    return 0;
}
