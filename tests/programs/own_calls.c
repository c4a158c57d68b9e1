// What a program can notice of code that makes its system calls for it: registers, flags, stack, signals, faults, cancellation, descriptors.
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

enum { ROUNDS = 3000 };
extern char **environ;

// One site of `syscall`, with everything in registers that the kernel keeps: all but rax, rcx, r11.
static const char *registers(void) {
    static char text[64];
    for (long i = 0; i < ROUNDS; i++) {
        unsigned long in[6] = {i, ~i, i * 3, i << 40, 7, i}, saved, site = 0;
        long got;
        // Not on the stack: its pointer moves in between.
        static unsigned long flags, before, red, rcx, wanted;
        red = 0, wanted = i % 2 ? 0x8d5 : 0x244;
        register unsigned long r10 __asm__("r10") = in[3], r8 __asm__("r8") = in[4], r9 __asm__("r9") = in[5];
        register unsigned long r12 __asm__("r12") = i * 5, r13 __asm__("r13") = i * 7, r14 __asm__("r14") = i * 11;
        unsigned long rdi = in[0], rsi = in[1], rdx = in[2], rbx = i * 13;
        __asm__ volatile(
            "mov %%rsp, %[saved]\n mov %[saved], -8(%%rsp)\n mov %[saved], -120(%%rsp)\n"
            "pxor %%xmm7, %%xmm7\n movq %[saved], %%xmm7\n"
            "sub $256, %%rsp\n push %[wanted]\n popfq\n pushfq\n pop %[before]\n push %[wanted]\n popfq\n lea 256(%%rsp), %%rsp\n"
            "mov $39, %%eax\n syscall\n 1:\n"
            "lea -512(%%rsp), %%rsp\n pushfq\n pop %[flags]\n lea 512(%%rsp), %%rsp\n cld\n"
            "mov %%rcx, %[rcx]\n lea 1b(%%rip), %[site]\n"
            "cmp %%rsp, %[saved]\n jne 2f\n cmp %[saved], -8(%%rsp)\n jne 2f\n cmp %[saved], -120(%%rsp)\n jne 2f\n"
            "movq %%xmm7, %%rcx\n cmp %%rcx, %[saved]\n jne 2f\n movl $1, %[red]\n 2:\n"
            : "=a"(got), [saved] "=&r"(saved), [flags] "=m"(flags), [before] "=m"(before), [red] "+m"(red), [rcx] "=m"(rcx),
              [site] "=&r"(site), "+D"(rdi), "+S"(rsi), "+d"(rdx), "+b"(rbx), "+r"(r10), "+r"(r8), "+r"(r9)
            : [wanted] "m"(wanted), "r"(r12), "r"(r13), "r"(r14)
            : "rcx", "r11", "memory", "xmm7", "cc");
        int same = rdi == in[0] && rsi == in[1] && rdx == in[2] && r10 == in[3] && r8 == in[4] && r9 == in[5];
        same = same && rbx == (unsigned long)i * 13 && r12 == (unsigned long)i * 5 && r13 == (unsigned long)i * 7;
        if (!same || got != getpid() || !red || rcx != site || (flags & 0x8d5) != (before & 0x8d5)) {
            snprintf(text, sizeof text, "differ at %ld: %d %d %d %#lx %#lx", i, same, (int)red, rcx == site, flags, before);
            return text;
        }
    }
    return "the same";
}

static volatile sig_atomic_t alarms;
static int ends[2];
static void on_alarm(int sig, siginfo_t *info, void *context) {
    alarms++;
    char byte = 'x';
    if (write(ends[1], &byte, 1) != 1) _exit(9);
    // The address that was interrupted is in the program or in a library, not in memory that it knows nothing of.
    unsigned long pc = ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
    if (pc >> 32 == 0x10fe || pc >> 32 == 0x10fd) _exit(8);
    (void)sig, (void)info;
}

static void timer(long us) {
    struct itimerval it = {{0, us}, {0, us}};
    setitimer(ITIMER_REAL, &it, 0);
}

static void signals(void) {
    if (pipe(ends)) _exit(7);
    long bytes = 0, interrupted = 0;
    for (int restart = 0; restart < 2; restart++) {
        struct sigaction sa = {.sa_sigaction = on_alarm, .sa_flags = SA_SIGINFO | (restart ? SA_RESTART : 0)};
        sigaction(SIGALRM, &sa, 0);
        alarms = 0;
        timer(2000);
        // Some reads come right behind others: on a slow machine, too, an alarm finds the program in one that waits.
        while (alarms < 100 || (!restart && !interrupted && alarms < 3000)) {
            char some[4096];
            long got = read(ends[0], some, sizeof some);
            if (got > 0) bytes += got;
            else if (errno == EINTR) interrupted++;
            else _exit(6);
            for (int i = alarms % 10; i > 0; i--)
                if (getppid() <= 0) _exit(5);
        }
        timer(0);
        struct timespec none = {0, 1000};
        nanosleep(&none, 0);
        if (restart && interrupted) printf("interrupted in spite of SA_RESTART\n");
        fcntl(ends[0], F_SETFL, O_NONBLOCK);
        char rest[4096];
        long left;
        while ((left = read(ends[0], rest, sizeof rest)) > 0) bytes += left;
        fcntl(ends[0], F_SETFL, 0);
        if (bytes != alarms) printf("%ld bytes of %d\n", bytes, (int)alarms);
        printf("restart %d: %s\n", restart, interrupted ? "interrupted" : "never interrupted");
        bytes = interrupted = 0;
    }
}

static sigjmp_buf away;
static void leaves(int sig) { siglongjmp(away, sig); }
static void jumps(void) {
    signal(SIGALRM, leaves);
    volatile int left = 0;
    for (;;) {
        if (sigsetjmp(away, 1) && ++left == 100) break;
        struct itimerval once = {{0, 0}, {0, 200}};
        setitimer(ITIMER_REAL, &once, 0);
        for (;;)
            if (getppid() <= 0) _exit(4);
    }
    signal(SIGALRM, SIG_IGN);
    printf("jumped out of %d handlers\n", left);
}

static void faults(void) {
    long page = sysconf(_SC_PAGESIZE);
    char *two = mmap(0, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(two + page, page, PROT_NONE);
    char *name = two + page - 10;
    memcpy(name, "/dev/null", 10);
    int results[8] = {0};
    for (int i = 0; i < 200; i++) {
        int fd = open(name, O_RDWR);
        results[0] += fd >= 0;
        results[1] += write(fd, two + page - 5, 5) == 5;
        results[2] += write(fd, two + page - 5, 6);
        close(fd);
        name[9] = 'x';
        results[3] += open(name, O_RDONLY) == -1 && errno == EFAULT;
        name[9] = 0;
        results[4] += open((char *)8, O_RDONLY) == -1 && errno == EFAULT;
        results[5] += open((char *)-4096L, O_RDONLY) == -1 && errno == EFAULT;
        results[6] += access(two + page, F_OK) == -1 && errno == EFAULT;
        results[7] += syscall(SYS_getcwd, two + page, 100L) == -1 && errno == EFAULT;
    }
    for (int i = 0; i < 8; i++) printf("%d ", results[i]);
    printf("faults\n");
}

static void *blocks(void *pipe) {
    char byte;
    for (;;)
        if (read(*(int *)pipe, &byte, 1) < 0) return "failed";
}
static int cleaned;
static void cleanup(void *nothing) { cleaned++, (void)nothing; }
static void *blocks_cleanly(void *pipe) {
    pthread_cleanup_push(cleanup, 0);
    blocks(pipe);
    pthread_cleanup_pop(0);
    return 0;
}
static void cancels(void) {
    int cancelled = 0;
    for (int i = 0; i < 30; i++) {
        int pipes[2];
        pthread_t thread;
        if (pipe(pipes)) _exit(3);
        pthread_create(&thread, 0, blocks_cleanly, pipes);
        for (int n = 0; n < 30; n++)
            if (write(pipes[1], "", 1) != 1) _exit(3);
        if (i % 2) usleep(200);
        pthread_cancel(thread);
        void *how;
        pthread_join(thread, &how);
        cancelled += how == PTHREAD_CANCELED;
        close(pipes[0]), close(pipes[1]);
    }
    printf("%d cancelled, %d cleaned up\n", cancelled, cleaned);
}

static int shared[2];
static void *works(void *nothing) {
    long sum = 0;
    for (int i = 0; i < ROUNDS; i++) {
        char byte = 1;
        if (write(shared[1], &byte, 1) != 1 || read(shared[0], &byte, 1) != 1) return (void *)-1;
        sum += byte + (gettid() > 0);
    }
    return (void *)sum + (nothing != 0);
}
static void threads(void) {
    if (pipe(shared)) _exit(2);
    pthread_t all[12];
    long sum = 0;
    for (int i = 0; i < 12; i++) pthread_create(&all[i], 0, works, 0);
    for (int i = 0; i < 12; i++) {
        void *got;
        pthread_join(all[i], &got);
        sum += (long)got;
    }
    printf("threads: %ld\n", sum);
}

static void children(void) {
    int failed = 0;
    for (int i = 0; i < 20; i++) {
        pid_t pid = i % 2 ? fork() : vfork();
        if (!pid) {
            if (i % 2)
                for (int n = 0; n < 100; n++) getppid();
            _exit(getpid() == getppid());
        }
        int status;
        failed += waitpid(pid, &status, 0) != pid || status;
        char *argv[] = {"true", 0};
        if (!posix_spawnp(&pid, "true", 0, 0, argv, environ)) failed += waitpid(pid, &status, 0) != pid || status;
    }
    printf("children: %d failed\n", failed);
}

static void *sets_gs(void *nothing) {
    long own[64] = {0}, base = 0;
    syscall(SYS_arch_prctl, ARCH_SET_GS, own);
    for (int i = 0; i < 100; i++) getppid();
    syscall(SYS_arch_prctl, ARCH_GET_GS, &base);
    long sum = 0;
    for (int i = 0; i < 64; i++) sum += own[i];
    return (void *)(long)(base == (long)own && !sum) + (nothing != 0);
}

// Calls with several instructions in front: the register that one of them saves, the other ways into them, and the time at which a handler sees each.
__asm__(".text\n.balign 16\n.type fronts, @function\nfronts:\n.cfi_startproc\n"
        // rdi: which way in. The kernel takes 0 from its stack as a descriptor that is closed.
        "sub $40, %rsp\n.cfi_adjust_cfa_offset 40\n movq $-1, 8(%rsp)\n movq $0, 16(%rsp)\n mov $77, %eax\n mov $1, %edx\n"
        "test %edi, %edi\n jne 1f\n"
        "mov 16(%rsp), %rsi\n mov %eax, %r8d\n mov 8(%rsp), %edi\n xor %eax, %eax\n syscall\n jmp 3f\n"
        "1: mov %eax, %r8d\n cmp $2, %edi\n je 2f\n"
        "movl $5, 24(%rsp)\n addl $1, 24(%rsp)\n xor $0x80, %r8d\n mov $39, %eax\n syscall\n"
        "mov 24(%rsp), %eax\n jmp 3f\n"
        "2: mov $0x6e, %eax\n xor $1, %r8d\n xor $2, %r8d\n syscall\n"
        "mov $6, %eax\n 3: shl $32, %r8\n mov %eax, %eax\n or %r8, %rax\n add $40, %rsp\n.cfi_adjust_cfa_offset -40\n ret\n"
        ".cfi_endproc\n.size fronts, .-fronts\n");
extern long fronts(long way);
static volatile sig_atomic_t seen, elsewhere;
static unsigned long first, last;
static void looks(int signal, siginfo_t *info, void *context) {
    unsigned long pc = ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
    seen += signal && info;
    elsewhere += pc - first > last - first;
}
// Of all code of the program and its libraries, at both ends of which nothing else is.
static void bounds(void) {
    char line[4096];
    FILE *maps = fopen("/proc/self/maps", "r");
    first = -1, last = 0;
    while (fgets(line, sizeof line, maps)) {
        unsigned long from, to;
        if (sscanf(line, "%lx-%lx r-xp", &from, &to) != 2 || !strstr(line, "/") || strstr(line, "memfd")) continue;
        if (!strstr(line, " r-xp ")) continue;
        first = from < first ? from : first, last = to > last ? to : last;
    }
    fclose(maps);
}
static void several(void) {
    long wrong = 0;
    struct sigaction action = {.sa_sigaction = looks, .sa_flags = SA_SIGINFO | SA_RESTART};
    struct itimerval often = {{0, 3000}, {0, 3000}}, never = {{0, 0}, {0, 0}};
    bounds();
    sigaction(SIGALRM, &action, 0);
    setitimer(ITIMER_REAL, &often, 0);
    for (int i = 0; i < ROUNDS; i++) {
        wrong += fronts(0) != (77l << 32 | (unsigned)-EBADF);
        wrong += fronts(1) != ((77l ^ 0x80) << 32 | 6);
        wrong += fronts(2) != ((77l ^ 3) << 32 | 6);
    }
    setitimer(ITIMER_REAL, &never, 0);
    printf("fronts: %ld wrong, %d elsewhere\n", wrong, (int)elsewhere);
}
// Calls at which another way ends too, with another number or another argument in the register that is loaded right in front: the first call of each
// site comes that way.
__asm__(".text\n.balign 16\n.type ways, @function\nways:\n.cfi_startproc\n"
        "mov %edi, %r8d\n mov $102, %eax\n test %r8d, %r8d\n je 1f\n mov $39, %eax\n 1: syscall\n mov %rax, %r9\n"
        "mov $3, %eax\n mov $-7, %edi\n test %r8d, %r8d\n mov $3, %eax\n je 2f\n mov $-1, %edi\n 2: syscall\n mov %edi, %eax\n"
        "shl $32, %r9\n or %r9, %rax\n ret\n.cfi_endproc\n.size ways, .-ways\n");
extern unsigned long ways(int other);
static void other_ways(void) {
    int wrong = 0;
    for (int i = 0; i < 200; i++) {
        unsigned long user = ways(0), process = ways(1);
        wrong += user != ((unsigned long)getuid() << 32 | (unsigned)-7);
        wrong += process != ((unsigned long)getpid() << 32 | (unsigned)-1);
    }
    printf("other ways: %d wrong\n", wrong);
}
// One instruction at a time, with the trap flag.
static void single_steps(void) {
    struct sigaction action = {.sa_sigaction = looks, .sa_flags = SA_SIGINFO};
    for (int i = 0; i < 100; i++) fronts(i % 3), getppid(), close(-1);
    bounds();
    seen = elsewhere = 0;
    sigaction(SIGTRAP, &action, 0);
    for (int i = 0; i < 3; i++) {
        __asm__ volatile("pushfq\n orq $0x100, (%%rsp)\n popfq" ::: "memory", "cc");
        getppid(), close(-1), syscall(SYS_getpid), fronts(i);
        __asm__ volatile("pushfq\n andq $~0x100, (%%rsp)\n popfq" ::: "memory", "cc");
    }
    printf("single steps: %d, %d elsewhere\n", (int)seen, (int)elsewhere);
}

static volatile sig_atomic_t traps;
static void on_trap(int sig) { traps += sig == SIGTRAP; }

int main(void) {
    setvbuf(stdout, 0, _IOLBF, 0);
    int lowest = open("/dev/null", O_RDONLY);
    close(lowest);
    printf("registers: %s\n", registers());
    threads();
    signals();
    jumps();
    faults();
    cancels();
    children();
    several();
    other_ways();
    single_steps();
    signal(SIGTRAP, on_trap);
    for (int i = 0; i < 50; i++) {
        __asm__ volatile("int3");
        getppid();
    }
    printf("%d traps\n", (int)traps);
    pthread_t thread;
    void *own;
    pthread_create(&thread, 0, sets_gs, 0);
    pthread_join(thread, &own);
    printf("gs: %ld\n", (long)own);
    close(ends[0]), close(ends[1]), close(shared[0]), close(shared[1]);
    int again = open("/dev/null", O_RDONLY);
    printf("descriptors: %d\n", again - lowest);
    return 0;
}
