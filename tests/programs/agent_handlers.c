// Signals every 50 µs, one on an alternate stack, whose handlers make calls. Prints how often each function was called.
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

// A handler may interrupt another count.
#define COUNT(n) __atomic_fetch_add(&n, 1, __ATOMIC_RELAXED)

static volatile long leaves, alarms, others, steps, halves;

__attribute__((noinline)) void leaf(void) { COUNT(leaves); }
__attribute__((noinline)) void on_alarm(int n) {
    COUNT(alarms);
    for (int i = 0; i < 5; i++) leaf();
}
__attribute__((noinline)) void on_other(int n, siginfo_t *info, void *context) {
    COUNT(others);
    leaf();
}
__attribute__((noinline)) int half(int n) {
    COUNT(halves);
    return n / 2;
}
// A tail call.
__attribute__((noinline)) int step(int n) {
    COUNT(steps);
    return half(n + 1);
}

int main(void) {
    stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
    sigaltstack(&stack, NULL);
    struct sigaction a = {.sa_handler = on_alarm, .sa_flags = SA_ONSTACK | SA_RESTART}, old;
    sigaction(SIGALRM, &a, NULL);
    struct sigaction b = {.sa_sigaction = on_other, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaddset(&b.sa_mask, SIGUSR2);
    sigaction(SIGUSR1, &b, NULL);
    sigaction(SIGUSR1, NULL, &old);
    if (old.sa_sigaction != on_other || !(old.sa_flags & SA_NODEFER) || !sigismember(&old.sa_mask, SIGUSR2) ||
        sigismember(&old.sa_mask, SIGHUP))
        return 3;
    struct itimerval every = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    timer_t timer;
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    struct itimerspec often = {{0, 70000}, {0, 70000}}, stop = {{0, 0}, {0, 0}};
    timer_settime(timer, 0, &often, NULL);
    setitimer(ITIMER_REAL, &every, NULL);
    long sum = 0;
    for (int i = 0; i < 300000; i++) sum += step(i);
    setitimer(ITIMER_REAL, &never, NULL);
    timer_settime(timer, 0, &stop, NULL);
    signal(SIGALRM, SIG_IGN);
    signal(SIGUSR1, SIG_IGN);
    if (alarms < 10 || others < 10) return 4;
    printf("leaf %ld\non_alarm %ld\non_other %ld\nstep %ld\nhalf %ld\n", leaves, alarms, others, steps, halves);
    return sum == 0;
}
