/* eintr.c - calls that a signal interrupts.
 * Certain calls:
 *   read on an empty pipe, interrupted by SIGALRM without SA_RESTART: the program sees EINTR;
 *   read on it again, interrupted by SIGALRM with SA_RESTART: restarted by the kernel, ends with 1 byte;
 *   nanosleep of 500 ms, stopped by SIGSTOP and continued by SIGCONT from a child: goes on as restart_syscall, ends with 0;
 *   wait4 for the child. Exits with 0 when the program saw just that. */
#define _GNU_SOURCE
#include "blocked.h"
#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int ends[2];
static volatile int alarms, write_at = -1;

/* The interrupted read must have begun before the byte arrives, so that only a later alarm writes it. */
static void on_alarm(int signo)
{
    (void)signo;
    if (++alarms == write_at && write(ends[1], "x", 1) != 1)
        _exit(3);
}

static void every(int milliseconds)
{
    struct itimerval timer = { { 0, milliseconds * 1000 }, { 0, milliseconds * 1000 } };
    setitimer(ITIMER_REAL, &timer, NULL);
}

static ssize_t read_with(int flags)
{
    struct sigaction action = { .sa_handler = on_alarm, .sa_flags = flags };
    char byte;
    sigaction(SIGALRM, &action, NULL);
    every(50);
    ssize_t n = read(ends[0], &byte, 1);
    int error = errno;
    every(0);
    errno = error;
    return n;
}

/* The child: stops the parent as soon as it sleeps in nanosleep, waits until it has stopped, lets it go on. */
static void stop_and_continue(int go)
{
    char byte;
    int parent = getppid();
    if (read(go, &byte, 1) != 1)
        _exit(1);
    await_blocked(parent, parent);
    kill(parent, SIGSTOP);
    usleep(50000);
    kill(parent, SIGCONT);
    _exit(0);
}

static int sleep_through_stop(void)
{
    int go[2], status;
    struct timespec half = { 0, 500000000 };
    if (pipe(go) != 0)
        return 1;
    pid_t child = fork();
    if (child == 0)
        stop_and_continue(go[0]);
    if (write(go[1], "g", 1) != 1)
        return 1;
    long slept = syscall(SYS_nanosleep, &half, NULL);
    return slept != 0 || waitpid(child, &status, 0) != child;
}

int main(void)
{
    if (pipe(ends) != 0)
        return 1;
    if (read_with(0) != -1 || errno != EINTR)
        return 1;
    write_at = alarms + 4;
    if (read_with(SA_RESTART) != 1)
        return 2;
    return sleep_through_stop() ? 3 : 0;
}
