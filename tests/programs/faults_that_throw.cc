// Faults in the first instructions of functions, of five kinds, whose handlers throw; and a cleanup on the way. In two threads. Prints two equal
// numbers, in which is what was caught, and in which order.
#include <csignal>
#include <cstdio>
#include <initializer_list>
#include <pthread.h>
#include <sys/mman.h>

#ifdef __clang__
#define ALONE __attribute__((noinline))
#else
#define ALONE __attribute__((noinline, noipa))
#endif

static void throws(int n, siginfo_t *, void *) {
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, n);
    pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
    throw n;
}
struct Cleanup {
    int *n;
    ~Cleanup() { ++*n; }
};
ALONE int divides(int a, int b) { return a / b; }
ALONE int illegal(int n) {
    if (n) asm volatile("ud2");
    return n;
}
ALONE int beyond(volatile int *p) { return *p + 1; }
ALONE void stores(volatile long *p) { *p = 7; }
ALONE int trapped(int n) {
    asm volatile("int3");
    return n;
}
static volatile int *volatile nothing, *volatile past;
static volatile int zero;
template <class F> ALONE static int caught(F f, int *cleaned) {
    try {
        Cleanup cleanup{cleaned};
        f();
    } catch (int n) {
        return n;
    }
    return 0;
}
ALONE static long all() {
    int cleaned = 0;
    long sum = 0;
    for (int i = 0; i < 50; i++) {
        sum = sum * 31 + caught([] { divides(7, zero); }, &cleaned);
        sum = sum * 31 + caught([] { illegal(1 - zero); }, &cleaned);
        sum = sum * 31 + caught([] { beyond(past); }, &cleaned);
        sum = sum * 31 + caught([] { beyond(nothing); }, &cleaned);
        sum = sum * 31 + caught([] { stores((volatile long *)nothing); }, &cleaned);
        sum = sum * 31 + caught([] { trapped(3); }, &cleaned);
        sum %= 1000003;
    }
    return sum + cleaned;
}
static void *work(void *result) {
    *(long *)result = all();
    return nullptr;
}

int main() {
    struct sigaction action = {};
    action.sa_sigaction = throws;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    for (int n : {SIGSEGV, SIGFPE, SIGILL, SIGBUS, SIGTRAP}) sigaction(n, &action, nullptr);
    // A page behind the end of its file.
    past = (volatile int *)mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fileno(tmpfile()), 0);
    long one = all(), two = 0;
    pthread_t thread;
    pthread_create(&thread, nullptr, work, &two);
    pthread_join(thread, nullptr);
    printf("%ld %ld\n", one, two);
}
