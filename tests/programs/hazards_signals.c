// What C programs do with signals.
#define COUNTED(X) X(leaf) X(middle) X(on_signal) X(tail) X(work) X(goes_over) X(on_trap) X(nests) X(on_info)
#include "hazards.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

ALONE int leaf(int n) {
    COUNT(leaf);
    return n + 1;
}
ALONE int middle(int n) {
    COUNT(middle);
    return leaf(n) * 2 + leaf(n + 1);
}
ALONE int tail(int n) {
    COUNT(tail);
    return middle(n + 1);
}

static volatile sig_atomic_t seen;
ALONE void on_signal(int n) {
    COUNT(on_signal);
    seen++;
    middle(n);
}
static void handle(int signal, void (*handler)(int), int flags) {
    struct sigaction action = {.sa_flags = flags};
    action.sa_handler = handler;
    sigaction(signal, &action, NULL);
}
static void every(int us) {
    struct itimerval timer = {{0, us}, {0, us}};
    setitimer(ITIMER_REAL, &timer, NULL);
    if (!us) signal(SIGALRM, SIG_IGN);
}
static long some_work(int rounds) {
    long sum = 0;
    for (int i = 0; i < rounds; i++) sum += tail(i) + middle(i);
    return sum;
}

// Signals at any instruction of a stub: a timer of 50 µs, one of 10 kHz, both on two stacks.
static void timer_of_50_us(void) {
    handle(SIGALRM, on_signal, SA_RESTART);
    every(50);
    long sum = some_work(20000);
    every(0);
    printf("timer_of_50_us %ld\n", sum);
}
static void use_stack(size_t size) {
    stack_t stack = {.ss_sp = malloc(size), .ss_size = size};
    sigaltstack(&stack, NULL);
}
static void timer_of_10_khz(void) {
    use_stack(65536);
    handle(SIGUSR1, on_signal, SA_ONSTACK | SA_RESTART);
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    timer_t timer;
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    struct itimerspec often = {{0, 100000}, {0, 100000}};
    timer_settime(timer, 0, &often, NULL);
    handle(SIGALRM, on_signal, 0);
    every(70);
    long sum = some_work(20000);
    every(0);
    timer_delete(timer);
    signal(SIGUSR1, SIG_IGN);
    printf("timer_of_10_khz %ld\n", sum);
}
static void *works(void *n) { return (void *)some_work(6000); }
static void timer_and_threads(void) {
    handle(SIGALRM, on_signal, SA_RESTART);
    every(100);
    long sum = 0;
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, works, NULL);
    for (int i = 0; i < 4; i++) {
        void *result;
        pthread_join(threads[i], &result);
        sum += (long)result;
    }
    every(0);
    printf("timer_and_threads %ld\n", sum);
}
static void small_signal_stack(void) {
    use_stack(sysconf(_SC_MINSIGSTKSZ) + 2048);
    handle(SIGUSR1, on_signal, SA_ONSTACK);
    seen = 0;
    for (int i = 0; i < 100; i++) raise(SIGUSR1);
    printf("small_signal_stack %d\n", seen);
}

// Handlers that do not return.
static sigjmp_buf back;
ALONE int work(int depth) {
    COUNT(work);
    if (depth == 0) return raise(SIGUSR2);
    int inner = work(depth - 1);
    KEEP_CALL;
    return inner + 1;
}
static void jumps(int n) {
    leaf(n);
    siglongjmp(back, n);
}
static void jumps_out_of_handlers(void) {
    handle(SIGUSR2, jumps, 0);
    volatile long sum = 0;
    for (volatile int i = 0; i < 500; i++) {
        int value = sigsetjmp(back, 1);
        if (value == 0) work(i % 50);
        else sum += value + leaf(i);
    }
    printf("jumps_out_of_handlers %ld\n", sum);
}
static void jumps_in_time(int n) {
    seen++;
    siglongjmp(back, 1);
}
static void jumps_out_of_a_timer(void) {
    handle(SIGALRM, jumps_in_time, SA_NODEFER);
    seen = 0;
    struct itimerval once = {{0, 0}, {0, 300}};
    volatile int out = 0;
    while (out < 40) {
        if (sigsetjmp(back, 1)) out++;
        else {
            setitimer(ITIMER_REAL, &once, NULL);
            for (;;) tail(3);
        }
    }
    signal(SIGALRM, SIG_IGN);
    inexact = 1;
    printf("jumps_out_of_a_timer %d\n", out);
}
static void jumps_off_another_stack(void) {
    use_stack(65536);
    handle(SIGUSR2, jumps, SA_ONSTACK);
    volatile long sum = 0;
    for (volatile int i = 0; i < 300; i++) {
        if (sigsetjmp(back, 1) == 0) work(i % 30);
        else sum += middle(i);
    }
    printf("jumps_off_another_stack %ld\n", sum);
}
static ucontext_t resumed;
static void sets_context(int n) {
    leaf(n);
    setcontext(&resumed);
}
static void setcontext_in_a_handler(void) {
    handle(SIGUSR2, sets_context, SA_NODEFER);
    volatile int n = 0;
    getcontext(&resumed);
    if (n++ < 100) work(n % 20);
    printf("setcontext_in_a_handler %d\n", n);
}
// A stack that overflows, thrice, with its handler elsewhere.
ALONE int forever(volatile int *p) { return forever(p) + *p; }
static void overflows(int n) { siglongjmp(back, 1); }
static void stack_overflow(void) {
    use_stack(65536);
    handle(SIGSEGV, overflows, SA_ONSTACK);
    int n = 1;
    for (volatile int i = 0; i < 3; i++) {
        if (sigsetjmp(back, 1) == 0) forever(&n);
        else printf("stack_overflow %d\n", i);
    }
    signal(SIGSEGV, SIG_DFL);
}
static void Dies_of_overflow(void) {
    int n = 1;
    printf("Dies_of_overflow\n");
    fflush(stdout);
    forever(&n);
}

// What sigaction and its like say and do.
static void on_info(int n, siginfo_t *info, void *context) {
    COUNT(on_info);
    seen = info->si_value.sival_int + (info->si_code == SI_QUEUE) + (info->si_pid == getpid());
}
static void actions(void) {
    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_NODEFER}, old;
    action.sa_sigaction = on_info;
    sigemptyset(&action.sa_mask);
    sigaddset(&action.sa_mask, SIGUSR2);
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGUSR1, NULL, &old);
    printf("actions %d %x %d %d\n", old.sa_sigaction == on_info, old.sa_flags & ~0x04000000,
           sigismember(&old.sa_mask, SIGUSR2), sigismember(&old.sa_mask, SIGHUP));
    union sigval value = {.sival_int = 40};
    sigqueue(getpid(), SIGUSR1, value);
    printf("actions %d\n", seen);
    printf("actions %d\n", signal(SIGUSR1, SIG_IGN) == (void (*)(int))on_info);
    printf("actions %d\n", signal(SIGUSR1, SIG_DFL) == SIG_IGN);
    handle(SIGUSR1, on_signal, SA_RESETHAND);
    raise(SIGUSR1);
    sigaction(SIGUSR1, NULL, &old);
    printf("actions %d\n", old.sa_handler == SIG_DFL);
    errno = 0;
    printf("actions %d %d\n", sigaction(SIGKILL, &action, NULL), errno);
    printf("actions %d %d\n", sigaction(4711, &action, NULL), errno);
    sigset_t mask;
    handle(SIGUSR1, on_signal, 0);
    sigprocmask(SIG_BLOCK, NULL, &mask);
    printf("actions %d\n", sigismember(&mask, SIGUSR1) + sigismember(&mask, SIGTERM));
}
static sigset_t inside;
static void shows_mask(int n) { sigprocmask(SIG_BLOCK, NULL, &inside); }
static void masks_in_handlers(void) {
    struct sigaction action = {.sa_handler = shows_mask};
    sigaddset(&action.sa_mask, SIGHUP);
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    for (int i = 1; i < 32; i++)
        if (sigismember(&inside, i)) printf("masks_in_handlers %d\n", i);
    sigprocmask(SIG_BLOCK, NULL, &inside);
    for (int i = 1; i < 32; i++)
        if (sigismember(&inside, i)) printf("masks_after_handlers %d\n", i);
}
// A handler that changes the mask, or a register, of what it returns to.
static void changes_context(int n, siginfo_t *info, void *context) { sigaddset(&((ucontext_t *)context)->uc_sigmask, SIGWINCH); }
static void changed_masks(void) {
    struct sigaction action = {.sa_sigaction = changes_context, .sa_flags = SA_SIGINFO};
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    sigset_t mask;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    printf("changed_masks %d\n", sigismember(&mask, SIGWINCH));
    sigemptyset(&mask);
    sigprocmask(SIG_SETMASK, &mask, NULL);
}
// Faults: in the first instruction of a function, which the handler goes over, and in its middle.
__asm__(".globl first_faults\n.type first_faults,@function\nfirst_faults:\n.cfi_startproc\n"
        "movl (%rdi),%eax\nmovl (%rdi,%rsi),%eax\nmovl $7,%eax\nret\n.cfi_endproc\n.size first_faults,.-first_faults\n");
extern int first_faults(volatile int *p, long n);
static void goes_over(int n, siginfo_t *info, void *context) {
    COUNT(goes_over);
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    long offset = registers[REG_RIP] - (long)first_faults;
    printf("faults %s\n", offset == 0 ? "first" : offset == 2 ? "second" : "elsewhere");
    registers[REG_RIP] += offset == 0 ? 2 : 3;
}
static void faults(void) {
    struct sigaction action = {.sa_sigaction = goes_over, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    printf("faults %d\n", first_faults(NULL, 0));
    signal(SIGSEGV, SIG_DFL);
}
static void on_trap(int n) {
    COUNT(on_trap);
    seen++;
}
static void breakpoints(void) {
    seen = 0;
    handle(SIGTRAP, on_trap, 0);
    for (int i = 0; i < 10; i++) {
        __asm__ volatile("int3");
        leaf(i);
    }
    signal(SIGTRAP, SIG_DFL);
    printf("breakpoints %d\n", seen);
}
// Calls that signals interrupt, or do not.
static void interrupted(void) {
    int ends[2];
    char byte;
    if (pipe(ends)) return;
    struct itimerval once = {{0, 0}, {0, 5000}};
    handle(SIGALRM, on_signal, 0);
    setitimer(ITIMER_REAL, &once, NULL);
    long n = read(ends[0], &byte, 1);
    printf("interrupted %ld %d\n", n, errno == EINTR);
    handle(SIGALRM, on_signal, SA_RESTART);
    setitimer(ITIMER_REAL, &once, NULL);
    pid_t child = fork();
    if (child == 0) {
        usleep(20000);
        _exit(write(ends[1], "x", 1) != 1);
    }
    printf("interrupted %ld\n", read(ends[0], &byte, 1));
    waitpid(child, NULL, 0);
    signal(SIGALRM, SIG_DFL);
}
static void other_ways(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    raise(SIGUSR1);
    int n = 0;
    sigwait(&set, &n);
    printf("other_ways %d\n", n == SIGUSR1);
    int fd = signalfd(-1, &set, SFD_CLOEXEC);
    struct signalfd_siginfo info;
    raise(SIGUSR1);
    long got = read(fd, &info, sizeof info) / (long)sizeof info;
    printf("other_ways %ld %u\n", got, info.ssi_signo == SIGUSR1);
    close(fd);
    handle(SIGUSR1, on_signal, 0);
    raise(SIGUSR1);
    sigemptyset(&set);
    seen = 0;
    sigsuspend(&set);
    printf("other_ways %d\n", seen);
    sigprocmask(SIG_SETMASK, &set, NULL);
}
static void on_child(int n) {
    int saved = errno;
    while (waitpid(-1, NULL, WNOHANG) > 0) seen++;
    errno = saved;
}
static void children_that_signal(void) {
    handle(SIGCHLD, on_child, SA_RESTART);
    seen = 0;
    for (int i = 0; i < 30; i++)
        if (fork() == 0) _exit(leaf(i) % 2);
    while (seen < 30) usleep(1000);
    signal(SIGCHLD, SIG_DFL);
    printf("children_that_signal %d\n", seen);
}
static void nests(int n) {
    COUNT(nests);
    middle(n);
    if (seen++ % 5 != 4) raise(SIGUSR1);
    leaf(n);
}
static void nested_handlers(void) {
    seen = 0;
    handle(SIGUSR1, nests, SA_NODEFER);
    for (int i = 0; i < 20; i++) raise(SIGUSR1);
    printf("nested_handlers %d\n", seen);
}
static pthread_t mainly;
static volatile int stopping;
static void *stormy(void *p) {
    while (!stopping) {
        pthread_kill(mainly, SIGUSR1);
        usleep(20);
    }
    return NULL;
}
static void storm(void) {
    pthread_t threads[2];
    mainly = pthread_self();
    stopping = 0;
    handle(SIGUSR1, on_signal, SA_NODEFER);
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, stormy, NULL);
    long sum = some_work(10000);
    stopping = 1;
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    signal(SIGUSR1, SIG_IGN);
    printf("storm %ld\n", sum);
}
static void Killed(void) {
    printf("Killed\n");
    fflush(stdout);
    write_counts();
    raise(SIGTERM);
}
static void Aborted(void) {
    handle(SIGABRT, on_signal, 0);
    fflush(stdout);
    abort();
}

int main(int argc, char **argv) {
    static const struct scenario all[] = {
        {"timer_of_50_us", timer_of_50_us}, {"timer_of_10_khz", timer_of_10_khz}, {"timer_and_threads", timer_and_threads},
        {"small_signal_stack", small_signal_stack}, {"jumps_out_of_handlers", jumps_out_of_handlers},
        {"jumps_out_of_a_timer", jumps_out_of_a_timer}, {"jumps_off_another_stack", jumps_off_another_stack},
        {"setcontext_in_a_handler", setcontext_in_a_handler}, {"stack_overflow", stack_overflow},
        {"Dies_of_overflow", Dies_of_overflow}, {"actions", actions}, {"masks_in_handlers", masks_in_handlers},
        {"changed_masks", changed_masks}, {"Faults", faults}, {"breakpoints", breakpoints}, {"interrupted", interrupted},
        {"other_ways", other_ways}, {"children_that_signal", children_that_signal}, {"nested_handlers", nested_handlers},
        {"storm", storm}, {"Killed", Killed}, {"Aborted", Aborted}, {NULL, NULL},
    };
    return run_scenarios(all, argc, argv);
}
