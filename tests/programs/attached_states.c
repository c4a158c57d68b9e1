// attached_states.c - programs in states in which tracers seldom come. Arguments: a state, and seconds.
// Each runs until SIGTERM comes, or the seconds are over, and checks itself: results of functions and calls, signal masks, and signals that
// wait. At the end: "right", and how many things went wrong.
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ALONE __attribute__((noinline, noipa))

extern char **environ;
static volatile sig_atomic_t over;
static long wrong, done;
static double until;
static char **words;

ALONE long fib(long n) {
    if (n < 2) return n;
    return fib(n - 1) + fib(n - 2);
}
ALONE void is(int right, const char *what) {
    if (right) return;
    if (__atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED) < 5) fprintf(stderr, "wrong: %s, errno %d\n", what, errno);
}
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}
static int goes_on(void) { return !over && now() < until; }
static void on_end(int n) { over = 1; }

static sigset_t mask;
ALONE void mask_is_the_same(void) {
    sigset_t there;
    pthread_sigmask(SIG_BLOCK, NULL, &there);
    for (int i = 1; i < 65; i++) is(sigismember(&there, i) == sigismember(&mask, i), "mask");
}

// Threads that come and go.
static void *short_life(void *n) {
    mask_is_the_same();
    return (void *)fib((long)n);
}
static void *makes_threads(void *p) {
    while (goes_on()) {
        pthread_t threads[4];
        for (long i = 0; i < 4; i++) is(!pthread_create(&threads[i], NULL, short_life, (void *)(i + 3)), "pthread_create");
        for (long i = 0; i < 4; i++) {
            void *result;
            pthread_join(threads[i], &result);
            is((long)result == fib(i + 3), "a thread's result");
        }
        __atomic_fetch_add(&done, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}
static void threads(void) {
    pthread_t makers[4];
    for (int i = 0; i < 4; i++) pthread_create(&makers[i], NULL, makes_threads, NULL);
    for (int i = 0; i < 4; i++) pthread_join(makers[i], NULL);
}

static int status_of(pid_t child) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}
ALONE int of_child(int n) {
    mask_is_the_same();
    return (int)fib(n) % 100 + (wrong != 0);
}
// Children that come and go, of two threads, some with children of their own.
static void *forks_children(void *p) {
    while (goes_on()) {
        pid_t children[3];
        for (int i = 0; i < 3; i++) {
            children[i] = fork();
            is(children[i] >= 0, "fork");
            if (children[i] == 0) {
                pid_t child = i == 2 ? fork() : -1;
                if (child == 0) _exit(of_child(7));
                _exit(child > 0 && status_of(child) != 13 ? 99 : of_child(i + 8));
            }
        }
        for (int i = 0; i < 3; i++) is(status_of(children[i]) == fib(i + 8) % 100, "a child's status");
        __atomic_fetch_add(&done, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}
static void forks(void) {
    pthread_t other;
    pthread_create(&other, NULL, forks_children, NULL);
    forks_children(NULL);
    pthread_join(other, NULL);
}
// Each program executes the next one; the last argument says how much went wrong before.
static void executes(void) {
    char text[20];
    for (int i = 0; i < 50; i++) is(fib(12) == 144, "fib");
    if (!goes_on()) return;
    snprintf(text, sizeof text, "%ld", wrong);
    char end[40];
    snprintf(end, sizeof end, "%f", until);
    // A SIGTERM waits for the handler of the next one.
    sigset_t term;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &term, NULL);
    execl("/proc/self/exe", words[0], words[1], words[2], end, text, NULL);
    is(0, "exec");
}
static void *executes_in_thread(void *p) {
    executes();
    over = 1;
    return NULL;
}
static void threads_that_execute(void) {
    pthread_t one, two;
    pthread_create(&two, NULL, short_life, (void *)20);
    pthread_create(&one, NULL, executes_in_thread, NULL);
    while (!over) fib(15);
    pthread_join(one, NULL);
}
// The parent waits in the kernel, where nothing stops it, until the child has ended.
static void vforks(void) {
    while (goes_on()) {
        pid_t child = vfork();
        if (child == 0) {
            struct timespec pause = {0, 30000000};
            nanosleep(&pause, NULL);
            _exit((int)fib(9));
        }
        is(status_of(child) == 34, "the child's status");
        pid_t spawned;
        char *command[] = {"true", NULL};
        is(!posix_spawnp(&spawned, "true", NULL, NULL, command, environ) && status_of(spawned) == 0, "posix_spawn");
        done++;
    }
}
static void *waits_in_vfork(void *p) {
    vforks();
    return NULL;
}
static void vforks_in_a_thread(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, waits_in_vfork, NULL);
    while (goes_on()) is(fib(14) == 377, "fib");
    pthread_join(thread, NULL);
}
// Signals that wait keep their values, whatever comes meanwhile.
static void all_blocked(void) {
    sigfillset(&mask);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    // Without those of the C library.
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    sigset_t wanted, term;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGRTMIN);
    sigaddset(&wanted, SIGTRAP);
    sigemptyset(&term);
    for (int n = 0; goes_on(); n++) {
        sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = n});
        sigqueue(getpid(), SIGTRAP, (union sigval){.sival_int = n});
        is(fib(16) == 987, "fib");
        mask_is_the_same();
        for (int i = 0; i < 2; i++) {
            siginfo_t info;
            is(sigwaitinfo(&wanted, &info) > 0 && info.si_value.sival_int == n && info.si_pid == getpid(), "its signal");
        }
        sigpending(&term);
        over = sigismember(&term, SIGTERM);
        done++;
    }
}
static void trap_blocked(void) {
    sigaddset(&mask, SIGTRAP);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    while (goes_on()) {
        is(fib(16) == 987, "fib");
        mask_is_the_same();
        done++;
    }
}
static void trap_ignored(void) {
    signal(SIGTRAP, SIG_IGN);
    while (goes_on()) {
        is(fib(16) == 987, "fib");
        struct sigaction there;
        sigaction(SIGTRAP, NULL, &there);
        is(there.sa_handler == SIG_IGN, "SIGTRAP is ignored");
    }
}
// Calls that nothing ends but SIGTERM, which only the first thread gets: none of them may return.
static volatile int ending;
#define NEVER(call) do { long r = (call); is(ending, #call); (void)r; } while (0)
static int ends[2];
static void *in_read(void *p) { char c; NEVER(read(ends[0], &c, 1)); return NULL; }
static void *in_poll(void *p) { struct pollfd f = {ends[0], POLLIN, 0}; NEVER(poll(&f, 1, 1000000)); return NULL; }
static void *in_epoll(void *p) {
    struct epoll_event event;
    sigset_t all;
    sigfillset(&all);
    NEVER(epoll_pwait(epoll_create1(0), &event, 1, -1, &all));
    return NULL;
}
static void *in_sleep(void *p) { struct timespec t = {100000, 0}; NEVER(clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL)); return NULL; }
static void *in_usleep(void *p) { NEVER(sleep(100000)); return NULL; }
static void *in_pause(void *p) { NEVER(pause()); return NULL; }
static void *in_suspend(void *p) { sigset_t all; sigfillset(&all); NEVER(sigsuspend(&all)); return NULL; }
static void *in_sigwait(void *p) {
    sigset_t one;
    struct timespec t = {100000, 0};
    sigemptyset(&one);
    sigaddset(&one, SIGUSR2);
    NEVER(sigtimedwait(&one, NULL, &t));
    return NULL;
}
static void *in_mutex(void *p) { NEVER(pthread_mutex_lock(p)); return NULL; }
static void *in_condition(void *p) {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    pthread_mutex_lock(&mutex);
    NEVER(pthread_cond_wait(&condition, &mutex));
    return NULL;
}
static void *in_message(void *p) {
    char text[100];
    NEVER(msgrcv(*(int *)p, text, 10, 0, 0));
    return NULL;
}
static void *in_wait(void *p) { NEVER(waitpid(*(pid_t *)p, NULL, 0)); return NULL; }
static void calls(void) {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&mutex);
    int queue = msgget(IPC_PRIVATE, 0600);
    pid_t child = fork();
    if (child == 0) for (;;) pause();
    if (pipe(ends)) abort();
    void *(*all[])(void *) = {in_read, in_poll, in_epoll, in_sleep, in_usleep, in_pause, in_suspend, in_sigwait, in_condition};
    pthread_t thread;
    sigset_t before = mask;
    sigfillset(&mask);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++) pthread_create(&thread, NULL, all[i], NULL);
    pthread_create(&thread, NULL, in_mutex, &mutex);
    if (queue >= 0) pthread_create(&thread, NULL, in_message, &queue);
    pthread_create(&thread, NULL, in_wait, &child);
    mask = before;
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    while (goes_on()) {
        struct timespec t = {0, 5000000};
        nanosleep(&t, NULL);
        fib(10);
        mask_is_the_same();
    }
    ending = 1;
    if (queue >= 0) msgctl(queue, IPC_RMID, NULL);
    kill(child, SIGKILL);
}
// One thread, in one call, for good.
static void one_call(void) {
    sigset_t all, term;
    sigfillset(&all);
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    int n = 0;
    is(!sigwait(&term, &n) && n == SIGTERM, "sigwait");
    sigset_t there;
    pthread_sigmask(SIG_SETMASK, &mask, &there);
    is(sigismember(&there, SIGTRAP) && sigismember(&there, SIGUSR1), "mask");
}
// It ends in the middle of everything, by itself, in one of several ways.
static void *ends_it(void *p) {
    struct timespec t = {0, (long)p * 1000000};
    nanosleep(&t, NULL);
    puts("right 0");
    fflush(stdout);
    exit(0);
}
static void ends_by_itself(void) {
    pthread_t threads[4];
    for (long i = 0; i < 4; i++) pthread_create(&threads[i], NULL, i ? short_life : ends_it, (void *)(i ? 25 : atol(words[3])));
    for (;;) fib(12);
}
static void busy(void) {
    while (goes_on()) {
        is(fib(16) == 987, "fib");
        done++;
    }
}

int main(int argc, char **argv) {
    static const struct { const char *name; void (*run)(void); } all[] = {
        {"threads", threads}, {"forks", forks}, {"executes", executes}, {"threads_that_execute", threads_that_execute},
        {"vforks", vforks}, {"vforks_in_a_thread", vforks_in_a_thread}, {"all_blocked", all_blocked},
        {"trap_blocked", trap_blocked}, {"trap_ignored", trap_ignored}, {"calls", calls}, {"one_call", one_call},
        {"ends", ends_by_itself}, {"busy", busy},
    };
    words = argv;
    signal(SIGTERM, on_end);
    sigset_t term;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    pthread_sigmask(SIG_UNBLOCK, &term, NULL);
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    until = now() + atof(argv[2]);
    if (argc > 4) {
        until = atof(argv[3]);
        wrong = atol(argv[4]);
    } else {
        puts("begun");
        fflush(stdout);
    }
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
        if (!strcmp(argv[1], all[i].name)) all[i].run();
    printf("right %ld\n", wrong);
    fprintf(stderr, "rounds %ld\n", done);
    fflush(stdout);
    _exit(wrong != 0);
}
