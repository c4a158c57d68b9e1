/* signals.c - signals that are handled, queued, blocked, ignored, and one that kills.
 * Certain calls and signals, in this order:
 *   rt_sigaction for USR1 (SA_SIGINFO), USR2 (SA_RESTART), HUP, RTMIN, INT (ignored), TERM (default);
 *   kill USR1; rt_sigqueueinfo USR1 with value 7; tgkill USR2; kill HUP: each delivered, then rt_sigreturn;
 *   kill INT: ignored; a ptrace tracer still sees it arrive (the kernel asks the tracer first), the program does not;
 *   RTMIN blocked, queued three times with the values 1 2 3, unblocked: three deliveries;
 *   kill TERM: the process is killed by SIGTERM. Prints "handled 7" before that. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile int handled;

static void on_info(int signo, siginfo_t *info, void *context)
{
    (void)signo, (void)info, (void)context;
    handled++;
}

static void on_signal(int signo)
{
    (void)signo;
    handled++;
}

static void install(int signo, int flags, void (*handler)(int))
{
    struct sigaction action = { .sa_flags = flags };
    if (flags & SA_SIGINFO)
        action.sa_sigaction = on_info;
    else
        action.sa_handler = handler;
    sigemptyset(&action.sa_mask);
    sigaddset(&action.sa_mask, SIGWINCH);
    sigaction(signo, &action, NULL);
}

static void queue(int signo, int number)
{
    union sigval value = { .sival_int = number };
    sigqueue(getpid(), signo, value);
}

static void queue_while_blocked(int signo)
{
    sigset_t set, old;
    sigemptyset(&set);
    sigaddset(&set, signo);
    sigprocmask(SIG_BLOCK, &set, &old);
    for (int i = 1; i <= 3; i++)
        queue(signo, i);
    sigprocmask(SIG_SETMASK, &old, NULL);
}

int main(void)
{
    install(SIGUSR1, SA_SIGINFO, NULL);
    install(SIGUSR2, SA_RESTART, on_signal);
    install(SIGHUP, SA_NODEFER, on_signal);
    install(SIGRTMIN, SA_SIGINFO | SA_RESTART, NULL);
    install(SIGINT, 0, SIG_IGN);
    install(SIGTERM, 0, SIG_DFL);
    kill(getpid(), SIGUSR1);
    queue(SIGUSR1, 7);
    syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGUSR2);
    kill(getpid(), SIGHUP);
    kill(getpid(), SIGINT);
    queue_while_blocked(SIGRTMIN);
    printf("handled %d\n", handled);
    fflush(stdout);
    kill(getpid(), SIGTERM);
    return 1;
}
