// attached.cc - a program that runs for a while, for tracers that come and go.
// It ends after some seconds, or when SIGTERM comes. Arguments: seconds, threads, microseconds of a timer (0: none).
// Each thread counts in its own way: recursion, an exception, longjmp, and calls that wait: nanosleep, epoll_wait, read, futex,
// sem_timedwait. None of these may fail, or end early. At the end: "right", and how many things went wrong.
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#include <semaphore.h>
#include <stdexcept>
#include <sys/epoll.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static std::atomic<bool> over;
static std::atomic<long> wrong, ticks;
#define CALL extern "C" __attribute__((noinline))
// Says on stderr which check it was.
#define WRONG (wrong++, dprintf(2, "attached.cc:%d: wrong, errno %d\n", __LINE__, errno))

CALL long fib(long n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
CALL long thrown(long n) { if (n == 0) throw std::runtime_error("x"); return thrown(n - 1) + 1; }
CALL long caught(long n) { try { return thrown(n); } catch (std::runtime_error &) { return n + 1; } }
CALL void far(jmp_buf &to, long n) { if (n == 0) longjmp(to, 7); far(to, n - 1); WRONG; }
CALL long jumped(long n) { jmp_buf here; if (int r = setjmp(here)) return r; far(here, n); return 0; }
CALL long in_handler(long n) { return fib(n); }
static void on_end(int) { over = true; }
static void on_tick(int) { int e = errno; if (in_handler(5) != 5) WRONG; ticks++; errno = e; }

static double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

static void *busy(void *) {
    while (!over) {
        if (fib(12) != 144 || caught(5) != 6 || jumped(4) != 7) WRONG;
        free(malloc(1000));
    }
    return nullptr;
}

// Calls that wait in full, one after the other. A handler that was installed before SA_RESTART matters is not in this thread.
static void *waits(void *) {
    int ends[2], p = epoll_create1(0);
    sem_t sem;
    sem_init(&sem, 0, 0);
    if (pipe(ends)) WRONG;
    while (!over) {
        double from = now();
        timespec time = { 0, 60000000 };
        if (nanosleep(&time, nullptr)) WRONG;
        if (now() - from < 0.0599) WRONG;
        epoll_event event;
        from = now();
        if (epoll_wait(p, &event, 1, 60) != 0 || now() - from < 0.0590) WRONG;
        clock_gettime(CLOCK_REALTIME, &time);
        time.tv_nsec += 60000000;
        if (time.tv_nsec >= 1000000000) { time.tv_nsec -= 1000000000; time.tv_sec++; }
        if (sem_timedwait(&sem, &time) != -1 || errno != ETIMEDOUT) WRONG;
    }
    return nullptr;
}

static int pipe_ends[2];
static void *reads(void *) {
    char c;
    if (read(pipe_ends[0], &c, 1) != 1 || c != 'x') WRONG;
    return nullptr;
}

int main(int, char **argv) {
    double until = now() + atof(argv[1]);
    int count = atoi(argv[2]), micros = atoi(argv[3]);
    pthread_t threads[66], reader;
    sigset_t alarms;
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    sigaddset(&alarms, SIGTERM);
    // Only the first thread and the busy ones get the timer's signals.
    pthread_sigmask(SIG_BLOCK, &alarms, nullptr);
    if (pipe(pipe_ends)) WRONG;
    pthread_create(&threads[0], nullptr, waits, nullptr);
    pthread_create(&reader, nullptr, reads, nullptr);
    pthread_sigmask(SIG_UNBLOCK, &alarms, nullptr);
    struct sigaction mine {}, there {};
    mine.sa_handler = on_tick;
    mine.sa_flags = SA_RESTART;
    sigaddset(&mine.sa_mask, SIGUSR1);
    sigaction(SIGALRM, &mine, nullptr);
    signal(SIGTERM, on_end);
    itimerval timer = { { 0, micros }, { 0, micros } };
    setitimer(ITIMER_REAL, &timer, nullptr);
    for (int i = 1; i <= count; i++) pthread_create(&threads[i], nullptr, busy, nullptr);
    puts("begun");
    fflush(stdout);
    while (!over && now() < until) {
        if (fib(10) != 55) WRONG;
        sigaction(SIGALRM, nullptr, &there);
        if (there.sa_handler != on_tick || !sigismember(&there.sa_mask, SIGUSR1)) WRONG;
        if (!micros) usleep(1000);
    }
    over = true;
    if (write(pipe_ends[1], "x", 1) != 1) WRONG;
    pthread_join(reader, nullptr);
    for (int i = 0; i <= count; i++) pthread_join(threads[i], nullptr);
    if (micros && !ticks) WRONG;
    printf("right %ld\n", wrong.load());
    return wrong ? 1 : 0;
}
