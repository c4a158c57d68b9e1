// Handlers that are set by the system call itself, so that the C library does not know of them: one that throws where a function's first
// instructions fault, one that is called by a timer within any instruction, and what rt_sigaction says of them. The call is made by syscall(2), or
// (-DOWN_INSTRUCTION) by an instruction of the program's own.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#define ALONE __attribute__((noinline))

struct kernel_action {
    void (*handler)(int, siginfo_t *, void *);
    unsigned long flags;
    void (*restorer)();
    unsigned long mask;
};
// mov $SYS_rt_sigreturn, %rax; syscall, in the bytes by which unwinders know the frame of a signal.
__asm__(".text\n.globl back\n.hidden back\nback: .byte 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05\n");
extern "C" void back();

#ifndef TICKS
#define TICKS 300
#endif

static long set(int signal, const kernel_action *action, kernel_action *before) {
#ifdef OWN_INSTRUCTION
    register long size __asm__("r10") = 8;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(SYS_rt_sigaction), "D"((long)signal), "S"(action), "d"(before), "r"(size)
                     : "rcx", "r11", "memory");
    return result < 0 ? -1 : result;
#else
    return syscall(SYS_rt_sigaction, signal, action, before, 8);
#endif
}

ALONE static void throws(int signal, siginfo_t *, void *) {
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, signal);
    sigprocmask(SIG_UNBLOCK, &one, nullptr);
    throw 5;
}
ALONE int reads(volatile int *p, int k) {
    int sum = *p;
    for (int i = 0; i < k; i++) sum += i * k;
    return sum;
}
ALONE int reads_later(volatile int *p, int k) {
    int sum = 0;
    for (int i = 0; i < k; i++) sum += i * k ^ sum;
    return sum + *p;
}

static volatile long ticks, done;
ALONE long leaf(long n) {
    __asm__ volatile("");
    return n + 1;
}
ALONE long middle(long n) {
    long r = leaf(n) + leaf(n + 1);
    __asm__ volatile("");
    return r;
}
ALONE static void ticked(int, siginfo_t *, void *) {
    ticks = ticks + 1;
    if (middle(ticks) == 2 * ticks + 3) done = done + 1;
}

int main() {
    kernel_action fault = {throws, SA_SIGINFO | 0x04000000, back, 0}, tick = {ticked, SA_SIGINFO | 0x04000000, back, 0}, seen = {};
    int caught = 0;
    if (set(SIGSEGV, &fault, nullptr)) return 1;
    try {
        reads(nullptr, 3);
    } catch (int n) {
        caught += n;
    }
    try {
        reads_later(nullptr, 3);
    } catch (int n) {
        caught += n;
    }
    if (set(SIGALRM, &tick, &seen)) return 1;
    bool was_default = seen.handler == nullptr;
    set(SIGALRM, nullptr, &seen);
    bool is_told = seen.handler == ticked && seen.mask == 0 && seen.flags == tick.flags;
    struct sigaction known;
    sigaction(SIGALRM, nullptr, &known);
    bool is_known = known.sa_sigaction == ticked;
    printf("%ld %ld\n", set(SIGKILL, &tick, nullptr), set(SIGALRM, (kernel_action *)8, nullptr));
    itimerval often = {{0, 100}, {0, 100}}, never = {};
    setitimer(ITIMER_REAL, &often, nullptr);
    long sum = 0, rounds = 0;
    while (ticks < TICKS || rounds < 1000) sum += middle(rounds++ & 1023);
    setitimer(ITIMER_REAL, &never, nullptr);
    printf("caught %d, %d %d %d, %s\n", caught, was_default, is_told, is_known, ticks == done && sum > 0 ? "right" : "wrong");
    return 0;
}
