// Executes calls one instruction at a time, with the trap flag, and unwinds at each instruction, as an asynchronous cancellation may at any:
// the frame of `outermost` is met every time. Prints a sum, and how often it was not.
//
// The handler of SIGTRAP is set by the system call, so that the C library does not know of it; with a second argument, by sigaction(3). Functions with names of local labels are in no
// table of symbols.
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#define ALONE __attribute__((noinline))

extern char __start_own_code[], __stop_own_code[];
static volatile int counting;
static long steps, unmet;
static uintptr_t places[8];

struct found {
    int frames, met;
};
static _Unwind_Reason_Code look(struct _Unwind_Context *context, void *p) __asm__(".Llook");
static _Unwind_Reason_Code look(struct _Unwind_Context *context, void *p) {
    struct found *found = p;
    uintptr_t ip = _Unwind_GetIP(context);
    found->met |= (uintptr_t)__start_own_code <= ip && ip < (uintptr_t)__stop_own_code;
    return ++found->frames > 60 ? _URC_END_OF_STACK : _URC_NO_REASON;
}
static void step(int signal, siginfo_t *info, void *context) __asm__(".Lstep");
static void step(int signal, siginfo_t *info, void *context) {
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    uintptr_t pc = registers[REG_RIP];
    // Blocked, this signal ends the process: who blocks all signals blocks all but this one.
    if (*(uint16_t *)pc == 0x050f && registers[REG_RAX] == SYS_rt_sigprocmask && registers[REG_RSI])
        *(uint64_t *)registers[REG_RSI] &= ~(1ul << (SIGTRAP - 1));
    if (!counting) return;
    struct found found = {0, 0};
    _Unwind_Backtrace(look, &found);
    steps++;
    if (found.met) return;
    if (unmet < 8) places[unmet] = pc;
    unmet++;
}
struct kernel_sigaction {
    void (*handler)(int, siginfo_t *, void *);
    unsigned long flags;
    void (*restorer)(void);
    unsigned long mask;
};
// mov $SYS_rt_sigreturn, %rax; syscall, in the bytes by which unwinders know the frame of a signal.
__asm__(".text\n.Lback: .byte 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05\n");
extern void back(void) __asm__(".Lback");

ALONE int leaf(int n) {
    free(malloc(n + 1));
    return n + 1;
}
ALONE int pushes(int n) {
    int room[4];
    __asm__ volatile("" ::"r"(room) : "rbx", "r12", "memory");
    return leaf(n) + 1;
}
ALONE int deep(int n) {
    int r = n ? deep(n - 1) + 1 : pushes(1);
    __asm__ volatile("" : "+r"(r)::"rbx");
    return r;
}
ALONE int tail(int n) {
    __asm__ volatile("");
    return deep(n);
}
ALONE int outer(int n) {
    counting = 1;
    int r = tail(n) + leaf(n);
    counting = 0;
    return r;
}
ALONE __attribute__((section("own_code"))) int outermost(int n) {
    int r = outer(n);
    __asm__ volatile("" : "+r"(r));
    return r;
}

int main(int argc, char **argv) {
    struct found first = {0, 0};
    _Unwind_Backtrace(look, &first);
    struct kernel_sigaction action = {step, SA_SIGINFO | 0x04000000, back, 0};
    struct sigaction known = {.sa_sigaction = step, .sa_flags = SA_SIGINFO};
    if (argc > 2 ? sigaction(SIGTRAP, &known, NULL) : syscall(SYS_rt_sigaction, SIGTRAP, &action, NULL, 8)) return 1;
    int sum = 0;
    for (int i = 0; i < (argc > 1 ? atoi(argv[1]) : 2); i++) {
        __asm__ volatile("lea -128(%%rsp), %%rsp; pushfq; orq $0x100, (%%rsp); popfq; lea 128(%%rsp), %%rsp" ::: "memory", "cc");
        sum += outermost(3);
        __asm__ volatile("lea -128(%%rsp), %%rsp; pushfq; andq $~0x100, (%%rsp); popfq; lea 128(%%rsp), %%rsp" ::: "memory", "cc");
    }
    printf("%d, of some hundred steps: %s, not unwound: %ld\n", sum, steps > 100 ? "yes" : "no", unmet);
    for (int i = 0; i < unmet && i < 8; i++) fprintf(stderr, "at %lx\n", places[i]);
    return unmet != 0;
}
