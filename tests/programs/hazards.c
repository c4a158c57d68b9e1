// What C programs do to their stacks, threads and modules.
#define COUNTED(X) X(leaf) X(middle) X(work) X(tail) X(odd) X(even) X(yields) X(goes_back) X(wanders) X(hands) X(hands_on) X(two) X(compare) X(traces)
#include "hazards.h"
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fenv.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <unistd.h>
#include <ucontext.h>
#include "hazards_handed.h"

ALONE int leaf(int n) {
    COUNT(leaf);
    return n + 1;
}
ALONE int middle(int n) {
    COUNT(middle);
    return leaf(n) * 2 + leaf(n + 1);
}

static void calls(void) {
    long sum = 0;
    for (int i = 0; i < 10000; i++) sum += middle(i);
    printf("calls %ld\n", sum);
}

// longjmp: near, far, and through many frames.
static jmp_buf back;
ALONE int work(int depth, int value) {
    volatile char room[512];
    memset((void *)room, value, sizeof room);
    COUNT(work);
    if (depth == 0) longjmp(back, value);
    int inner = work(depth - 1, value);
    KEEP_CALL;
    return inner + room[depth % 512];
}
static void longjmps(void) {
    long sum = 0;
    for (volatile int i = 1; i <= 1000; i++) {
        int value = setjmp(back);
        if (value == 0) sum += work(i % 200, i % 100 + 1);
        else sum += value + leaf(value);
    }
    printf("longjmps %ld\n", sum);
}

// Tail calls, each of which is a jump where the compiler optimises.
ALONE int even(int n);
ALONE int odd(int n) {
    COUNT(odd);
    return n == 0 ? 0 : even(n - 1);
}
ALONE int even(int n) {
    COUNT(even);
    return n == 0 ? 1 : odd(n - 1);
}
ALONE int tail(int n) {
    COUNT(tail);
    return middle(n + 1);
}
static void tail_calls(void) {
    long sum = 0;
    for (int i = 0; i < 200; i++) sum += even(i % 40) + tail(i);
    printf("tail_calls %ld\n", sum);
}
static void long_tail_calls(void) { printf("long_tail_calls %d\n", even(10000) + even(10001) * 2); }

// Threads that end, leave and are cancelled.
static int cleaned;
static void clean(void *by) { __atomic_fetch_add(&cleaned, *(int *)by, __ATOMIC_RELAXED); }
ALONE int leave(int depth, int wait) {
    int one = 1, inner;
    pthread_cleanup_push(clean, &one);
    if (depth == 0) {
        if (!wait) pthread_exit((void *)7);
        for (;;) pause();
    }
    inner = leave(depth - 1, wait);
    pthread_cleanup_pop(0);
    return inner + 1;
}
static void *leaver(void *wait) {
    leave(20, wait != NULL);
    return NULL;
}
static void leaving_threads(void) {
    long sum = 0;
    for (int i = 0; i < 40; i++) {
        pthread_t thread;
        void *result;
        pthread_create(&thread, NULL, leaver, i % 2 ? "wait" : NULL);
        if (i % 2) pthread_cancel(thread);
        pthread_join(thread, &result);
        sum += (long)result;
    }
    printf("leaving_threads %ld %d\n", sum, cleaned);
}
static void *async_cancelled(void *p) {
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    __atomic_store_n((int *)p, 1, __ATOMIC_RELEASE);
    for (;;) middle(3);
}
static void asynchronous_cancel(void) {
    long sum = 0;
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        void *result;
        int begun = 0;
        pthread_create(&thread, NULL, async_cancelled, &begun);
        while (!__atomic_load_n(&begun, __ATOMIC_ACQUIRE)) sched_yield();
        usleep(200);
        pthread_cancel(thread);
        pthread_join(thread, &result);
        sum += (long)result;
    }
    inexact = 1;
    printf("asynchronous_cancel %ld\n", sum);
}
static void *thread_calls(void *n) {
    long sum = 0;
    for (int i = 0; i < 50; i++) sum += middle((long)n + i);
    return (void *)sum;
}
static void sixty_four_threads(void) {
    long sum = 0;
    for (int round = 0; round < 4; round++) {
        pthread_t threads[64];
        for (long i = 0; i < 64; i++) pthread_create(&threads[i], NULL, thread_calls, (void *)i);
        for (int i = 0; i < 64; i++) {
            void *result;
            pthread_join(threads[i], &result);
            sum += (long)result;
        }
    }
    printf("sixty_four_threads %ld\n", sum);
}
// Stacks that are unmapped some time after their threads have ended, while others start.
enum { STACK = 64 << 10 };
static void *starts_threads(void *p) {
    long sum = 0;
    void *left[4] = {0};
    for (long i = 0; i < 300; i++) {
        pthread_attr_t attributes;
        pthread_t thread;
        void *result, *stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        pthread_attr_init(&attributes);
        pthread_attr_setstack(&attributes, stack, STACK);
        if (pthread_create(&thread, &attributes, thread_calls, p)) abort();
        pthread_join(thread, &result);
        if (left[i % 4]) munmap(left[i % 4], STACK);
        left[i % 4] = stack;
        sum += (long)result;
    }
    return (void *)sum;
}
static void stacks_that_go(void) {
    pthread_t threads[8];
    long sum = 0;
    for (long i = 0; i < 8; i++) pthread_create(&threads[i], NULL, starts_threads, (void *)i);
    for (int i = 0; i < 8; i++) {
        void *result;
        pthread_join(threads[i], &result);
        sum += (long)result;
    }
    printf("stacks_that_go %ld\n", sum);
}
static void small_stacks(void) {
    long sum = 0;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, sysconf(_SC_THREAD_STACK_MIN));
    for (long i = 0; i < 20; i++) {
        pthread_t thread;
        void *result;
        if (pthread_create(&thread, &attributes, thread_calls, (void *)i)) abort();
        pthread_join(thread, &result);
        sum += (long)result;
    }
    printf("small_stacks %ld\n", sum);
}
static pthread_key_t key;
static void destroy(void *value) { __atomic_fetch_add(&cleaned, middle((long)value) > 0, __ATOMIC_RELAXED); }
static void *with_key(void *n) {
    pthread_setspecific(key, n);
    return NULL;
}
static void thread_destructors(void) {
    cleaned = 0;
    pthread_key_create(&key, destroy);
    for (long i = 1; i <= 20; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, with_key, (void *)i);
        pthread_join(thread, NULL);
    }
    printf("thread_destructors %d\n", cleaned);
}

// Contexts: coroutines that yield from inside of calls.
static ucontext_t home, contexts[8];
static long yielded;
ALONE int yields(int id, int depth) {
    COUNT(yields);
    if (depth == 0) {
        yielded += leaf(id);
        swapcontext(&contexts[id], &home);
        return 1;
    }
    int inner = yields(id, depth - 1);
    KEEP_CALL;
    return inner + 1;
}
static void coroutine(int id) {
    for (int i = 0; i < 50; i++) yielded += yields(id, (id * 7 + i) % 13);
}
static void coroutines(void) {
    static char stacks[8][65536];
    yielded = 0;
    for (int i = 0; i < 8; i++) {
        getcontext(&contexts[i]);
        contexts[i].uc_stack.ss_sp = stacks[i];
        contexts[i].uc_stack.ss_size = sizeof stacks[i];
        contexts[i].uc_link = &home;
        makecontext(&contexts[i], (void (*)(void))coroutine, 1, i);
    }
    for (int round = 0; round < 51; round++)
        for (int i = 0; i < 8; i++) swapcontext(&home, &contexts[(i * 3 + round) % 8]);
    printf("coroutines %ld\n", yielded);
}
static ucontext_t again;
ALONE int goes_back(int n) {
    COUNT(goes_back);
    if (n < 100) setcontext(&again);
    return n;
}
static void setcontexts(void) {
    volatile int n = 0;
    getcontext(&again);
    n++;
    printf("setcontexts %d\n", goes_back(n));
}
// A coroutine that another thread continues.
static ucontext_t moved, mover;
ALONE int wanders(int n) {
    COUNT(wanders);
    swapcontext(&moved, &mover);
    return n + leaf(n);
}
static void wanderer(void) {
    for (int i = 0; i < 10; i++) yielded += wanders(i);
}
static void *continues(void *p) {
    swapcontext(&mover, &moved);
    return NULL;
}
static void coroutine_in_threads(void) {
    static char stack[65536];
    yielded = 0;
    getcontext(&moved);
    moved.uc_stack.ss_sp = stack;
    moved.uc_stack.ss_size = sizeof stack;
    moved.uc_link = &mover;
    makecontext(&moved, wanderer, 0);
    for (int i = 0; i < 11; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, continues, NULL);
        pthread_join(thread, NULL);
    }
    printf("coroutine_in_threads %ld\n", yielded);
}
// Coroutines that all threads continue, at any depth of calls.
ALONE int hands(struct fiber *f, int depth) {
    COUNT(hands);
    if (depth == 0) {
        leave_fiber(f);
        return leaf(f->id);
    }
    int inner = hands(f, depth - 1);
    if (depth % 3 == 0) leave_fiber(f);
    return inner + 1;
}
ALONE int hands_on(struct fiber *f, int depth) {
    COUNT(hands_on);
    return hands(f, depth + 1);
}
static void hander(struct fiber *f) {
    for (int i = 0; i < HANDS; i++) {
        long sum = hands(f, (f->id * 7 + i) % 13) + hands_on(f, i % 5);
        __atomic_fetch_add(&yielded, sum, __ATOMIC_RELAXED);
    }
}
static void handed_near(void) {
    yielded = 0;
    hand_around(hander, 0, 1);
    printf("handed_near %ld\n", yielded);
}
static void handed_far(void) {
    yielded = 0;
    hand_around(hander, 0, 0);
    printf("handed_far %ld\n", yielded);
}
static void handed_by_jump(void) {
    yielded = 0;
    for (int i = 0; i < 4; i++) hand_around(hander, 1, i % 2);
    printf("handed_by_jump %ld\n", yielded);
}

// Registers: what is passed and returned in all of them, and what a call must not change.
typedef struct {
    double a, b;
} pair;
typedef struct {
    long v[5];
} large;
ALONE pair two(double a, long b, double c) {
    COUNT(two);
    return (pair){a * c, b + c};
}
ALONE large five(int a, int b, int c, int d, int e, int f, int g, int h, double x) {
    return (large){{a + b, c + d, e + f, g + h, (long)x}};
}
ALONE long double extended(long double a, long double b) { return a / b; }
ALONE _Complex double complex_of(double a, double b) { return a + b * 1.0i; }
ALONE __int128 wide(__int128 a) { return a * a; }
ALONE long sum_of(int n, ...) {
    va_list list;
    double sum = 0;
    va_start(list, n);
    for (int i = 0; i < n; i++) sum += i % 2 ? va_arg(list, double) : va_arg(list, int);
    va_end(list);
    return sum;
}
ALONE int small(int *p) { return *p; }
ALONE void nothing(void) {}
static void registers(void) {
    double sum = 0;
    for (int i = 1; i < 100; i++) {
        pair p = two(i, i * 2, 0.5);
        large l = five(i, 2, 3, 4, 5, 6, 7, 8, i * 1.5);
        sum += p.a + p.b + l.v[0] + l.v[1] * 3 + l.v[2] * 5 + l.v[3] * 7 + l.v[4] * 11;
        sum += (double)extended(i, 7) + __real__ complex_of(i, 2) + __imag__ complex_of(i, i) + (double)wide(i);
        sum += sum_of(4, i, 1.5, 2, i * 0.25) + small(&i);
    }
    fesetround(FE_UPWARD);
    volatile double third = 1;
    nothing();
    third /= 3;
    int rounding = fegetround() == FE_UPWARD;
    fesetround(FE_TONEAREST);
    errno = 4711;
    nothing();
    middle(1);
    printf("registers %.6f %.20f %d %d\n", sum, (double)third, rounding, errno);
}
#ifndef __clang__
static void nested_functions(void) {
    int base = 17;
    int inner(int n) { return leaf(n) + base; }
    int (*volatile pointer)(int) = inner;
    long sum = 0;
    for (int i = 0; i < 100; i++) sum += pointer(i);
    printf("nested_functions %ld\n", sum);
}
#endif
__attribute__((ms_abi)) ALONE long foreign(long a, long b, long c, long d, long e) { return a + b * 2 + c * 3 + d * 4 + e * 5; }
static void other_conventions(void) { printf("other_conventions %ld\n", foreign(1, 2, 3, 4, 5)); }
static int compare(const void *a, const void *b) {
    COUNT(compare);
    return *(const int *)a - *(const int *)b;
}
static void callbacks(void) {
    int numbers[500];
    for (int i = 0; i < 500; i++) numbers[i] = i * 7919 % 503;
    qsort(numbers, 500, sizeof *numbers, compare);
    long sum = 0;
    for (int i = 0; i < 500; i++) sum = sum * 3 + numbers[i];
    printf("callbacks %ld\n", sum);
}

// Stacks, as a program sees its own.
ALONE int traces(int depth, void **frames) {
    COUNT(traces);
    if (depth == 0) return backtrace(frames, 64);
    int n = traces(depth - 1, frames);
    KEEP_CALL;
    return n;
}
static void backtraces(void) {
    void *frames[64];
    int first = traces(1, frames), second = traces(11, frames);
    printf("backtraces %d\n", second - first);
}

// Modules.
static void modules(void) {
    long sum = 0;
    const char *path = getenv("HAZARDS_LIBRARY");
    for (int i = 0; i < 30 && path; i++) {
        void *library = dlopen(path, RTLD_NOW);
        if (!library) printf("%s\n", dlerror());
        int (*function)(int) = (int (*)(int))dlsym(library, "library_function");
        sum += function(i);
        dlclose(library);
    }
    printf("modules %ld\n", sum);
}
static void next_symbol(void) {
    long (*next)(void) = (long (*)(void))dlsym(RTLD_NEXT, "getpid");
    printf("next_symbol %d\n", next != NULL && next() == getpid());
}
static void at_end(void) {
    nothing();
    printf("at_end\n");
    fflush(stdout); }
static void exit_handlers(void) { atexit(at_end); }
__attribute__((constructor)) static void before_main(void) { setvbuf(stdout, NULL, _IOFBF, 65536); }

#ifndef LIBRARY
int main(int argc, char **argv) {
    static const struct scenario all[] = {
        {"calls", calls}, {"longjmps", longjmps}, {"tail_calls", tail_calls}, {"long_tail_calls", long_tail_calls},
        {"leaving_threads", leaving_threads}, {"asynchronous_cancel", asynchronous_cancel},
        {"sixty_four_threads", sixty_four_threads}, {"stacks_that_go", stacks_that_go}, {"small_stacks", small_stacks},
        {"thread_destructors", thread_destructors}, {"coroutines", coroutines}, {"setcontexts", setcontexts},
        {"coroutine_in_threads", coroutine_in_threads}, {"handed_near", handed_near}, {"handed_far", handed_far},
        {"handed_by_jump", handed_by_jump}, {"registers", registers},
#ifndef __clang__
        {"nested_functions", nested_functions},
#endif
        {"other_conventions", other_conventions}, {"callbacks", callbacks}, {"backtraces", backtraces},
        {"modules", modules}, {"next_symbol", next_symbol}, {"Exit_handlers", exit_handlers}, {NULL, NULL},
    };
    return run_scenarios(all, argc, argv);
}
#endif
