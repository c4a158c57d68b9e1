/* alarms.c - calls under a storm of signals.
 * Usage: alarms handled|ignored N. A timer sends SIGALRM every 50 us, which is handled or ignored, while N calls of getppid are made.
 * Prints its parent and how many signals were handled. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

static volatile long handled;

static void on_alarm(int sig)
{
    (void)sig;
    handled++;
}

int main(int argc, char **argv)
{
    struct sigaction act;
    memset(&act, 0, sizeof act);
    act.sa_flags = SA_RESTART;
    act.sa_handler = argc > 1 && !strcmp(argv[1], "ignored") ? SIG_IGN : on_alarm;
    sigaction(SIGALRM, &act, 0);
    struct itimerval often = { { 0, 50 }, { 0, 50 } }, never = { { 0, 0 }, { 0, 0 } };
    setitimer(ITIMER_REAL, &often, 0);
    long n = argc > 2 ? atol(argv[2]) : 1000;
    for (long i = 0; i < n; i++)
        syscall(SYS_getppid);
    setitimer(ITIMER_REAL, &never, 0);
    char line[64];
    int len = snprintf(line, sizeof line, "%d %ld\n", getpid() ? (int)getppid() : 0, handled);
    return write(1, line, len) != len;
}
