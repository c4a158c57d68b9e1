// A stack that overflows, and a handler that says so.
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static sigjmp_buf back;
int forever(volatile int *p) { return forever(p) + *p; }
void on_overflow(int n) { siglongjmp(back, 1); }

int main(void) {
    stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
    sigaltstack(&stack, NULL);
    struct sigaction a = {.sa_handler = on_overflow, .sa_flags = SA_ONSTACK};
    sigaction(SIGSEGV, &a, NULL);
    int n = 1;
    for (volatile int i = 0; i < 3; i++) {
        if (sigsetjmp(back, 1) == 0) forever(&n);
        else printf("overflow %d\n", i);
    }
    fflush(stdout);
    signal(SIGSEGV, SIG_DFL);
    return forever(&n);
}
