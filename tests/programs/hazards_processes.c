// What C programs do with processes: children of all kinds, programs in other programs' places, filters of system calls.
#define COUNTED(X) X(leaf) X(middle) X(on_alarm)
#include "hazards.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

extern char **environ;

ALONE int leaf(int n) {
    COUNT(leaf);
    return n + 1;
}
ALONE int middle(int n) {
    COUNT(middle);
    return leaf(n) * 2 + leaf(n + 1);
}
static int status_of(pid_t child) {
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void forks(void) {
    long sum = 0;
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0) _exit(middle(i) % 200);
        sum += status_of(child) + leaf(i);
    }
    printf("forks %ld\n", sum);
}
ALONE int inside(int depth) {
    if (depth) {
        int inner = inside(depth - 1);
        return inner + middle(depth);
    }
    pid_t child = fork();
    if (child == 0) return 0;
    return status_of(child);
}
// A child that returns through the calls of its parent.
static void fork_inside_of_calls(void) {
    for (int i = 0; i < 5; i++) {
        pid_t self = getpid();
        int value = inside(20);
        if (getpid() != self) _exit(value % 100);
        printf("fork_inside_of_calls %d\n", value);
        fflush(stdout);
    }
}
static void forks_of_forks(void) {
    int depth = 0;
    pid_t self = getpid();
    fflush(stdout);
    for (; depth < 6; depth++) {
        pid_t child = fork();
        middle(depth);
        if (child) {
            int status = status_of(child);
            if (getpid() != self) _exit(status + 1);
            printf("forks_of_forks %d\n", status);
            return;
        }
    }
    _exit(7);
}
static void *forking(void *n) {
    pid_t child = fork();
    if (child == 0) _exit(middle((long)n) % 100);
    return (void *)(long)status_of(child);
}
static void forks_in_threads(void) {
    long sum = 0;
    pthread_t threads[16];
    for (long i = 0; i < 16; i++) pthread_create(&threads[i], NULL, forking, (void *)i);
    for (int i = 0; i < 16; i++) {
        void *result;
        pthread_join(threads[i], &result);
        sum += (long)result;
    }
    printf("forks_in_threads %ld\n", sum);
}
static void threads_in_forks(void) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        forks_in_threads();
        fflush(stdout);
        _exit(3);
    }
    printf("threads_in_forks %d\n", status_of(child));
}
static pid_t vforked(char *path, char *word) {
    pid_t child = vfork();
    if (child == 0) {
        execl(path, path, word, NULL);
        _exit(44);
    }
    return child;
}
static void vforks(void) {
    long sum = 0;
    fflush(stdout);
    for (int i = 0; i < 5; i++) sum = sum * 3 + status_of(vforked(arguments[0], "Executed"));
    sum += status_of(vforked("/does/not/exist", "x"));
    pid_t child = vfork();
    if (child == 0) _exit(leaf(3));
    printf("vforks %ld\n", sum * 2 + status_of(child));
}
static void spawns(void) {
    long sum = 0;
    char *words[] = {arguments[0], "Executed", NULL}, *no_environment[] = {NULL};
    fflush(stdout);
    for (int i = 0; i < 6; i++) {
        pid_t child;
        if (posix_spawn(&child, arguments[0], NULL, NULL, words, i % 2 ? environ : no_environment)) abort();
        sum = sum * 3 + status_of(child);
    }
    pid_t child;
    sum += posix_spawn(&child, "/does/not/exist", NULL, NULL, words, environ);
    char command[4200];
    snprintf(command, sizeof command, "'%s' Executed", arguments[0]);
    sum += WEXITSTATUS(system(command));
    FILE *pipe = popen("echo popen; exit 3", "r");
    char line[100] = "";
    sum += fgets(line, sizeof line, pipe) != NULL;
    printf("spawns %ld %s", sum + WEXITSTATUS(pclose(pipe)), line);
}
static void Executed(void) {
    printf("executed %d\n", middle(5));
    fflush(stdout);
    write_counts();
    exit(9);
}
// Programs in each other's places: "Chain" counts down in its environment.
static void Chain(void) {
    const char *left = getenv("HAZARDS_LEFT");
    int n = left ? atoi(left) : 12;
    printf("chain %d %d\n", n, middle(n));
    fflush(stdout);
    write_counts();
    char text[20];
    snprintf(text, sizeof text, "%d", n - 1);
    setenv("HAZARDS_LEFT", text, 1);
    errno = 0;
    execl("/does/not/exist", "x", NULL);
    int absent = errno;
    execl("/", "x", NULL);
    if (absent != ENOENT || errno != EACCES) abort();
    if (n == 3) execlp("env", "env", arguments[0], "Chain", NULL);
    if (n == 2) syscall(SYS_execve, arguments[0], (char *[]){arguments[0], "Chain", NULL}, environ);
    if (n == 1) fexecve(open(arguments[0], O_RDONLY | O_CLOEXEC), (char *[]){arguments[0], "Chain", NULL}, environ);
    if (n > 0) execl(arguments[0], arguments[0], "Chain", NULL);
    exit(n + 5);
}
static void *executes(void *p) {
    execl(arguments[0], arguments[0], "Executed", NULL);
    return NULL;
}
static void Exec_in_a_thread(void) {
    pthread_t thread;
    fflush(stdout);
    pthread_create(&thread, NULL, executes, NULL);
    for (;;) pause();
}
static void environment(void) {
    FILE *pipe = popen("env | grep -c -e LD_PRELOAD -e TRAPLINE", "r");
    char line[100] = "";
    if (!fgets(line, sizeof line, pipe)) abort();
    pclose(pipe);
    clearenv();
    printf("environment %s", line);
    fflush(stdout);
    printf("environment %d\n", status_of(vforked(arguments[0], "Executed")));
    setenv("PATH", "/usr/bin:/bin", 1);
}
// No descriptors, no memory.
static void few_resources(void) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_NOFILE, &none);
        setrlimit(RLIMIT_NPROC, &none);
        pid_t grandchild = fork();
        _exit(middle(2) + (grandchild > 0));
    }
    printf("few_resources %d\n", status_of(child) > 0);
    if ((child = fork()) == 0) {
        struct rlimit little = {1 << 20, 1 << 20};
        setrlimit(RLIMIT_AS, &little);
        _exit(middle(3));
    }
    printf("few_resources %d\n", status_of(child));
    inexact = 1;
}
static void closed_descriptors(void) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        close_range(0, ~0U, 0);
        int n = open("/dev/null", O_RDONLY) * 10 + open("/dev/null", O_RDONLY);
        middle(n);
        _exit(n);
    }
    printf("closed_descriptors %d\n", status_of(child));
}
static void another_user(void) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        if (getuid() == 0 && (setgid(65534) || setuid(65534))) _exit(1);
        middle(1);
        pid_t second = fork();
        if (second == 0) _exit(middle(3) % 100);
        _exit(status_of(second));
    }
    printf("another_user %d\n", status_of(child));
    inexact = 1;
}
// clone(2) by hand.
static int cloned(void *p) {
    leaf(1);
    return 17;
}
static void clones(void) {
    static char stack[65536];
    long sum = 0;
    fflush(stdout);
    for (int i = 0; i < 5; i++) {
        sum += status_of(clone(cloned, stack + sizeof stack, SIGCHLD, NULL));
        sum += status_of(clone(cloned, stack + sizeof stack, SIGCHLD | CLONE_VM | CLONE_VFORK, NULL));
        pid_t child = syscall(SYS_fork);
        if (child == 0) _exit(leaf(3));
        sum += status_of(child);
        child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
        if (child == 0) _exit(leaf(4));
        sum += status_of(child);
    }
    printf("clones %ld\n", sum);
}

// Filters of system calls. What a filter does not know ends the process.
#define ALLOW(n) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, n, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
static void filter(int by_prctl, unsigned other) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(SYS_write), ALLOW(SYS_exit), ALLOW(SYS_exit_group), BPF_STMT(BPF_RET | BPF_K, other),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (by_prctl ? prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) : (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program))
        abort();
}
static int much(void) {
    long sum = 0;
    for (int i = 0; i < 200000; i++) sum += middle(i);
    return sum % 100;
}
static void in_child(const char *name, void (*restrict_it)(void)) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        middle(1);
        restrict_it();
        syscall(SYS_exit, much());
    }
    printf("%s %d\n", name, status_of(child));
}
static void be_strict(void) { prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT); }
static void kill_by_prctl(void) { filter(1, SECCOMP_RET_KILL_PROCESS); }
static void kill_by_syscall(void) { filter(0, SECCOMP_RET_KILL_PROCESS); }
static void refuse(void) { filter(1, SECCOMP_RET_ERRNO | EPERM); }
static void seccomp_strict(void) { in_child("seccomp_strict", be_strict); }
static void seccomp_kill(void) { in_child("seccomp_kill", kill_by_prctl); }
static void seccomp_kill_by_syscall(void) { in_child("seccomp_kill_by_syscall", kill_by_syscall); }
static void seccomp_refuse(void) { in_child("seccomp_refuse", refuse); }
// What needs no more than a handler and threads.
static void on_alarm(int n) {
    COUNT(on_alarm);
    leaf(n);
}
static void in_a_filter_with_signals(void) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
        sigaction(SIGALRM, &action, NULL);
        struct itimerval often = {{0, 200}, {0, 200}};
        setitimer(ITIMER_REAL, &often, NULL);
        struct sock_filter code[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
            ALLOW(SYS_write), ALLOW(SYS_exit), ALLOW(SYS_rt_sigreturn), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        };
        struct sock_fprog program = {sizeof code / sizeof *code, code};
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
        int n = much();
        syscall(SYS_exit, n);
    }
    printf("seccomp_signals %d\n", status_of(child));
}
static void seccomp_signals(void) { in_a_filter_with_signals(); }
// System calls become signals, whoever makes them (Syscall User Dispatch); their handler makes calls of functions too.
#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif
static volatile char blocked;
static volatile int dispatched;
static void on_call(int n, siginfo_t *info, void *context) {
    blocked = 0;
    leaf(info->si_syscall);
    dispatched++;
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RAX] = 4242;
}
static void dispatch(void) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        struct sigaction action = {.sa_sigaction = on_call, .sa_flags = SA_SIGINFO};
        sigaction(SIGSYS, &action, NULL);
        if (prctl(PR_SET_SYSCALL_USER_DISPATCH, 1, 0, 0, &blocked)) _exit(1);
        int right = 0;
        for (int i = 0; i < 200; i++) {
            blocked = 1;
            right += syscall(SYS_getppid) == 4242;
            blocked = 0;
            right += middle(i) == middle(i);
        }
        _exit(right == 400 && dispatched == 200 ? 7 : 2);
    }
    printf("dispatch %d\n", status_of(child));
}
// A filter that the next program inherits: it has what that needs, but no sockets.
static void seccomp_exec(void) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        struct sock_filter code[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 1, 0), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        };
        struct sock_fprog program = {sizeof code / sizeof *code, code};
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
        execl(arguments[0], arguments[0], "Executed", NULL);
        _exit(1);
    }
    printf("seccomp_exec %d\n", status_of(child));
}

int main(int argc, char **argv) {
    static const struct scenario all[] = {
        {"forks", forks}, {"fork_inside_of_calls", fork_inside_of_calls}, {"forks_of_forks", forks_of_forks},
        {"forks_in_threads", forks_in_threads}, {"threads_in_forks", threads_in_forks}, {"vforks", vforks},
        {"spawns", spawns}, {"Executed", Executed}, {"Chain", Chain}, {"Exec_in_a_thread", Exec_in_a_thread},
        {"few_resources", few_resources}, {"closed_descriptors", closed_descriptors}, {"another_user", another_user},
        {"clones", clones}, {"Seccomp_strict", seccomp_strict}, {"Seccomp_kill", seccomp_kill},
        {"Seccomp_kill_by_syscall", seccomp_kill_by_syscall}, {"Seccomp_refuse", seccomp_refuse},
        {"Seccomp_signals", seccomp_signals}, {"Seccomp_exec", seccomp_exec}, {"Dispatch", dispatch},
        {"environment", environment}, {NULL, NULL},
    };
    return run_scenarios(all, argc, argv);
}
