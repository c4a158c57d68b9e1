/* System calls become signals (Syscall User Dispatch) for all code but a range of the program's own, as emulators have it: in a thread, with a selector
 * and without one, and in the first thread. The handler makes the call that was meant; it, and what is interrupted, call functions and allocate.
 * Prints what went right, how many calls came that neither the program nor libc has made, and whether enough came.
 * SET(…): how it is turned on; by default with an instruction of the range. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif
#ifndef SET
#define SET(...) made(SYS_prctl, __VA_ARGS__, 0L)
#endif
#define ALONE __attribute__((noinline))

/* The range: a call of six arguments, and the return from a handler. The kernel looks at the address behind an instruction. */
__asm__(".pushsection allowed,\"ax\",@progbits\n.globl first_allowed,made,handler_returns,last_allowed\nfirst_allowed:\n"
        ".type made,@function\nmade:\n.cfi_startproc\n"
        "mov %rdi,%rax\nmov %rsi,%rdi\nmov %rdx,%rsi\nmov %rcx,%rdx\nmov %r8,%r10\nmov %r9,%r8\nmov 8(%rsp),%r9\nsyscall\nret\n"
        ".cfi_endproc\n.size made,.-made\nhandler_returns: mov $15,%eax\nsyscall\nnop\nlast_allowed:\n.popsection\n");
extern char first_allowed[], last_allowed[], handler_returns[];
extern long made(long number, ...);

struct kernel_action {
    void (*handler)(int, siginfo_t *, void *);
    unsigned long flags;
    void *restorer;
    unsigned long mask;
};

static __thread volatile char blocked;
static volatile long dispatched, foreign;

ALONE long leaf(long n) {
    __asm__ volatile("");
    return n + 1;
}
ALONE long middle(long n) {
    long r = leaf(n) + leaf(n + 1);
    __asm__ volatile("");
    return r;
}

ALONE static void emulates(int n, siginfo_t *info, void *context) {
    greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
    middle(n);
    dispatched++;
    switch (info->si_syscall) {
    case SYS_getppid: r[REG_RAX] = 4242; return;
    /* What libc's allocator does. */
    case SYS_mmap: case SYS_munmap: case SYS_mprotect: case SYS_brk: case SYS_mremap: case SYS_futex: break;
    default: foreign++;
    }
    r[REG_RAX] = made(info->si_syscall, r[REG_RDI], r[REG_RSI], r[REG_RDX], r[REG_R10], r[REG_R8], r[REG_R9]);
}

static void *thread(void *has_selector) {
    struct kernel_action action = {emulates, SA_SIGINFO | SA_NODEFER | 0x04000000, handler_returns, 0};
    made(SYS_rt_sigaction, (long)SIGSYS, &action, 0L, 8L, 0L, 0L);
    long right = 0;
    if (SET(PR_SET_SYSCALL_USER_DISPATCH, 1L, (long)first_allowed, last_allowed - first_allowed, has_selector ? (long)&blocked : 0L))
        return (void *)-1;
    blocked = 1;
    for (long i = 0; i < 200; i++) {
        right += syscall(SYS_getppid) == 4242;
        right += middle(i) == 2 * i + 3;
        void *volatile block = malloc(100 + i * 1000);
        right += block != 0;
        free(block);
    }
    blocked = 0;
    made(SYS_prctl, PR_SET_SYSCALL_USER_DISPATCH, 0L, 0L, 0L, 0L, 0L);
    return (void *)right;
}

int main(void) {
    pthread_t one;
    void *right[3];
    for (long i = 0; i < 2; i++) {
        pthread_create(&one, 0, thread, (void *)i);
        for (long k = 0; k < 1000; k++) middle(k);
        pthread_join(one, &right[i]);
    }
    right[2] = thread(&right);
    printf("%ld %ld %ld, foreign %ld, %s\n", (long)right[0], (long)right[1], (long)right[2], foreign, dispatched >= 600 ? "enough" : "too few");
    return 0;
}
