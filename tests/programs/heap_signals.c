// Handlers of signals that allocate, while the program does something else than allocate: that is what a program may do.
#include "heap.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>

enum { TIMES = 150 };
static volatile sig_atomic_t seen;
static sigjmp_buf back;

ALONE static void *leaks(size_t size) {
    void *block = MALLOC(size);
    KEEP_CALL;
    return block;
}
static void every(int us) {
    struct itimerval timer = {{0, us}, {0, us}};
    setitimer(ITIMER_REAL, &timer, NULL);
}
ALONE static void on_timer(int signal) {
    (void)signal;
    int saved = errno;
    if (seen < TIMES) {
        void *blocks[3];
        for (size_t i = 0; i < 3; i++) blocks[i] = leaks(10 + i);
        FREE(blocks[1]);
        if (++seen == TIMES) every(0);
    }
    errno = saved;
}
ALONE static void on_timer_leaves(int signal) {
    (void)signal;
    // One may be on its way while the timer is stopped.
    if (seen >= TIMES) return;
    if (++seen == TIMES) every(0);
    leaks(40);
    siglongjmp(back, 1);
}
static void handle(int signal, void (*handler)(int), int flags) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = flags;
    sigaction(signal, &action, NULL);
}
ALONE static long works(int depth) {
    if (depth) {
        long sum = works(depth - 1);
        KEEP_CALL;
        return sum + 1;
    }
    long sum = 0;
    while (seen < TIMES) sum += syscall(SYS_getppid);
    return sum;
}
ALONE static void timer(void) {
    handle(SIGALRM, on_timer, SA_RESTART);
    every(1000);
    works(5);
    leaks(7);
}
ALONE static void other_stack(void) {
    stack_t stack = {.ss_sp = MALLOC(64 << 10), .ss_size = 64 << 10};
    sigaltstack(&stack, NULL);
    handle(SIGALRM, on_timer, SA_RESTART | SA_ONSTACK);
    every(1000);
    works(5);
    leaks(7);
}
// Handlers that are left by a jump, on the stack of the program and on another one.
ALONE static void jumps_out(void) {
    if (arguments[2]) {
        stack_t stack = {.ss_sp = MALLOC(64 << 10), .ss_size = 64 << 10};
        sigaltstack(&stack, NULL);
    }
    handle(SIGALRM, on_timer_leaves, arguments[2] ? SA_ONSTACK : 0);
    volatile int begun = 0;
    sigsetjmp(back, 1);
    if (!begun) {
        begun = 1;
        every(1000);
    }
    works(5);
    leaks(7);
}
// Handlers in handlers, each of which allocates before and after the next.
ALONE static void on_nested(int signal) {
    void *block = leaks(50);
    if (signal < SIGRTMIN + 5) raise(signal + 1);
    leaks(60);
    FREE(block);
}
ALONE static void nested(void) {
    for (int s = SIGRTMIN; s <= SIGRTMIN + 5; s++) handle(s, on_nested, 0);
    for (int i = 0; i < 10; i++) raise(SIGRTMIN);
}
// Dies of a signal, with what it holds.
ALONE static void killed(void) {
    leaks(1234);
    FREE(leaks(5));
    say();
    raise(SIGKILL);
}
ALONE static void aborted(void) {
    leaks(2345);
    say();
    abort();
}

static const struct scenario all[] = {
    {"timer", timer},   {"other_stack", other_stack}, {"jumps_out", jumps_out}, {"nested", nested},
    {"killed", killed}, {"aborted", aborted},         {NULL, NULL},
};

int main(int argc, char **argv) { return run_scenario(all, argc, argv); }
