// targets.c - programs that are hard to attach to. Arguments: MODE [ARGUMENT...]
// Each prepares as its mode says, prints "begun", and calls functions until SIGTERM comes or 60 seconds are over. At the end: "right",
// and how many things went wrong.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CALL __attribute__((noinline))

static volatile sig_atomic_t over, asked;
static long wrong;
static int is_forking, is_loading, is_filtering;

CALL long fib(long n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
static void on_end(int n) { (void)n; over = 1; }
static void on_ask(int n) { (void)n; asked = 1; }

static void must(int holds, const char *what) {
    if (holds) return;
    perror(what);
    exit(3);
}

// Filters: calls that are refused, each with the number of an argument and a bit of it, or with -1 for all calls.
struct refused { int call, argument; unsigned bit; };

static void filter(unsigned action, const struct refused *list, int count) {
    struct sock_filter code[256];
    int n = 0;
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    for (int i = 0; i < count; i++) {
        int all = list[i].argument < 0;
        code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, list[i].call, 0, all ? 1 : 3);
        if (!all) {
            code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                                     offsetof(struct seccomp_data, args) + 8 * list[i].argument);
            code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, list[i].bit, 0, 1);
        }
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action);
    }
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = { n, code };
    must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no_new_privs");
    must(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0, "seccomp");
}

// Only what the program itself needs.
static void allow_list(void) {
    static const int calls[] = { SYS_read, SYS_write, SYS_close, SYS_rt_sigreturn, SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_brk,
                                 SYS_clock_nanosleep, SYS_nanosleep, SYS_exit_group, SYS_exit, SYS_munmap, SYS_futex,
                                 SYS_clock_gettime, SYS_restart_syscall, SYS_newfstatat,
                                 SYS_getrandom };
    enum { COUNT = sizeof calls / sizeof *calls };
    struct sock_filter code[COUNT + 4];
    int n = 0;
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < COUNT; i++)
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i], COUNT - i, 0);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = { n, code };
    must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no_new_privs");
    must(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0, "seccomp");
}

static void limit(int what, rlim_t to) {
    struct rlimit now = { to, to };
    must(setrlimit(what, &now) == 0, "setrlimit");
}

static rlim_t address_space(void) {
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    must(file && fscanf(file, "%ld", &pages) == 1, "statm");
    fclose(file);
    return (rlim_t)pages * 4096;
}

static void *works(void *unused) {
    (void)unused;
    while (!over) {
        if (fib(8) != 21) __atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);
        usleep(500);
    }
    return NULL;
}

static int status_of(pid_t child) {
    int status = -1;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

CALL int in_child(void) { return fib(10) == 55 ? 7 : 1; }
CALL int before_exec(char *const *argv) { execv(argv[0], argv); return 9; }

// Forks, and has the child call functions, or execute a program.
static void forks(char *const *argv) {
    pid_t child = fork();
    if (child == 0) _exit(argv[0] ? before_exec(argv) : in_child());
    if (status_of(child) != (argv[0] ? 0 : 7)) wrong++;
}

static void loads(const char *path, long n) {
    void *library = dlopen(path, RTLD_NOW);
    must(library != NULL, path);
    long (*function)(long) = (long (*)(long))dlsym(library, "in_library");
    must(function != NULL, "in_library");
    for (int i = 0; i < 100; i++)
        if (function(n + i) != n + i + 1) wrong++;
}

CALL int once(void) { return fib(10) == 55 ? 0 : 1; }

int main(int argc, char **argv) {
    const char *mode = argv[1];
    static const struct refused sockets[] = { { SYS_socket, -1, 0 } }, exec[] = { { SYS_mmap, 2, PROT_EXEC } },
                                changes[] = { { SYS_mprotect, 2, PROT_EXEC } }, memfd[] = { { SYS_memfd_create, -1, 0 } },
                                memory[] = { { SYS_openat, -1, 0 }, { SYS_socket, -1, 0 } }, barrier[] = { { SYS_membarrier, -1, 0 } }, maps[] = { { SYS_mmap, -1, 0 } },
                                harmless[] = { { SYS_reboot, -1, 0 }, { SYS_mount, -1, 0 }, { SYS_kexec_load, -1, 0 } };
    unsigned kills = SECCOMP_RET_KILL_PROCESS, refuses = SECCOMP_RET_ERRNO | EPERM;
    pthread_t threads[4];
    int count = 0;
    if (argc < 2) return 2;
    if (!strcmp(mode, "once")) return once();
    struct sigaction ends = { .sa_handler = on_end }, asks = { .sa_handler = on_ask };
    sigaction(SIGTERM, &ends, NULL);
    sigaction(SIGUSR1, &asks, NULL);
    const char *actions[] = { "kill", "errno" };
    for (int i = 0; i < 2; i++) {
        unsigned action = i == 0 ? kills : refuses;
        if (argc < 3 || strcmp(mode, actions[i]) != 0) continue;
        if (!strcmp(argv[2], "socket")) filter(action, sockets, 1);
        else if (!strcmp(argv[2], "mmap-exec")) filter(action, exec, 1);
        else if (!strcmp(argv[2], "mprotect-exec")) filter(action, changes, 1);
        else if (!strcmp(argv[2], "memfd_create")) filter(action, memfd, 1);
        else if (!strcmp(argv[2], "membarrier")) filter(action, barrier, 1);
        else if (!strcmp(argv[2], "mmap")) filter(action, maps, 1);
        else if (!strcmp(argv[2], "nothing")) filter(action, harmless, 3);
        else return 2;
    }
    if (!strcmp(mode, "allow-list")) allow_list();
    if (!strcmp(mode, "strict-thread")) {
        // One thread has a filter of its own.
        pthread_create(&threads[count++], NULL, works, NULL);
        filter(kills, sockets, 1);
    }
    if (!strcmp(mode, "undumpable")) must(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0, "undumpable");
    if (!strcmp(mode, "mdwe")) {
        if (prctl(65 /* PR_SET_MDWE */, 1, 0, 0, 0) != 0) return 77;
    }
    if (!strcmp(mode, "as")) limit(RLIMIT_AS, address_space() + strtoul(argv[2], NULL, 10) * 1024);
    if (!strcmp(mode, "nofile")) limit(RLIMIT_NOFILE, strtoul(argv[2], NULL, 10));
    if (!strcmp(mode, "fsize")) limit(RLIMIT_FSIZE, 0);
    if (!strcmp(mode, "nproc")) limit(RLIMIT_NPROC, 0);
    if (!strcmp(mode, "memlock")) limit(RLIMIT_MEMLOCK, 0), mlockall(MCL_FUTURE);
    if (!strcmp(mode, "stacks")) {
        pthread_attr_t small;
        pthread_attr_init(&small);
        must(pthread_attr_setstacksize(&small, PTHREAD_STACK_MIN) == 0, "stack");
        while (count < 4) must(pthread_create(&threads[count++], &small, works, NULL) == 0, "thread");
    }
    if (!strcmp(mode, "tls"))
        for (int i = 2; i < argc; i++) {
            void *library = dlopen(argv[i], RTLD_NOW);
            if (!library) fprintf(stderr, "full: %s\n", dlerror());
        }
    if (!strcmp(mode, "full")) {
        // No room near the text: everything within 2 GB that is free is reserved.
        unsigned long text = (unsigned long)main & ~0xffful, page = 1 << 16;
        for (unsigned long size = 1ul << 30; size >= 4096; size /= 2)
            for (unsigned long at = text - (3ul << 30); at < text + (3ul << 30); at += size > page ? size / 2 : size)
                if (mmap((void *)at, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0) ==
                        MAP_FAILED && errno == ENOMEM) break;
    }
    if (!strcmp(mode, "waits-in-vfork")) {
        // The parent waits until the child has ended, which runs in its memory.
        pthread_create(&threads[count++], NULL, works, NULL);
        puts("begun");
        fflush(stdout);
        if (vfork() == 0) {
            struct timespec time = { atoi(argv[2]), 0 };
            while (nanosleep(&time, &time)) {}
            _exit(0);
        }
    } else {
        is_forking = !strcmp(mode, "forks") || !strcmp(mode, "executes");
        is_loading = !strcmp(mode, "loads");
        is_filtering = !strcmp(mode, "filters");
        puts("begun");
        fflush(stdout);
    }
    for (long n = 0; n < 60000 && !over; n++) {
        if (fib(10) != 55) wrong++;
        if (is_forking && n % 20 == 0) forks(argv + 2);
        if (is_filtering && asked) filter(kills, memory, 2), is_filtering = 0;
        if (is_loading && asked) loads(argv[2], n), is_loading = 0;
        usleep(1000);
    }
    over = 1;
    for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
    printf("right %ld\n", wrong);
    return wrong != 0;
}
