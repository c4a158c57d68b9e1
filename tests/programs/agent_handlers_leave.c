// Handlers that leave by siglongjmp, from the thread's stack and from an alternate one; one that is reset; a handler's argument.
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static sigjmp_buf back;
static volatile int seen;

int inner(int n) {
    if (n) siglongjmp(back, n);
    return 0;
}
void on_signal(int n) {
    seen++;
    inner(n);
}
void on_reset(int n) { seen += 1000; }
int raises(int n) {
    raise(n);
    return 1;
}

int main(void) {
    stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
    sigaltstack(&stack, NULL);
    struct sigaction a = {.sa_handler = on_signal}, b = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK}, old;
    sigaction(SIGUSR1, &a, NULL);
    sigaction(SIGUSR2, &b, NULL);
    long sum = 0;
    for (volatile int i = 0; i < 2000; i++) {
        int value = sigsetjmp(back, 1);
        if (value == 0) sum += raises(i % 2 ? SIGUSR1 : SIGUSR2);
        else sum += value;
    }
    struct sigaction once = {.sa_handler = on_reset, .sa_flags = SA_RESETHAND};
    sigaction(SIGHUP, &once, NULL);
    raise(SIGHUP);
    sigaction(SIGHUP, NULL, &old);
    printf("%ld %d %d\n", sum, seen, old.sa_handler == SIG_DFL);
    fflush(stdout);
    int *nothing = NULL;
    struct sigaction segv = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK | SA_NODEFER};
    sigaction(SIGSEGV, &segv, NULL);
    if (sigsetjmp(back, 1) == 0) return *(volatile int *)nothing;
    printf("%d\n", seen);
    return 0;
}
