// What C++ programs do: exceptions of all kinds, coroutines, thunks, threads.
#define COUNTED(X) X(leaf) X(middle) X(thrower) X(deep) X(step) X(hands)
#include "hazards.h"
#include <coroutine>
#include <csignal>
#include <dlfcn.h>
#include <functional>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
#include "hazards_handed.h"

extern "C" {
ALONE int leaf(int n) {
    COUNT(leaf);
    return n + 1;
}
ALONE int middle(int n) {
    COUNT(middle);
    return leaf(n) * 2 + leaf(n + 1);
}
ALONE int thrower(int n) {
    COUNT(thrower);
    if (n % 3 == 0) throw n;
    if (n % 3 == 1) throw std::runtime_error(std::to_string(n));
    return leaf(n);
}
static int destroyed;
struct Guard {
    int n;
    ~Guard() { __atomic_fetch_add(&destroyed, n, __ATOMIC_RELAXED); }
};
ALONE int deep(int depth, int n) {
    Guard guard{1};
    COUNT(deep);
    if (depth == 0) return thrower(n);
    int inner = deep(depth - 1, n);
    KEEP_CALL;
    return inner + 1;
}
}
static long caught(int depth, int n) {
    try {
        return deep(depth, n);
    } catch (int i) {
        return i * 1000L;
    } catch (const std::exception &e) {
        return -std::stol(e.what());
    }
}
static void exceptions() {
    long sum = 0;
    for (int i = 0; i < 200; i++) sum += caught(i % 30, i);
    printf("exceptions %ld %d\n", sum, destroyed);
}
static void deep_exceptions() {
    destroyed = 0;
    long sum = caught(700, 3) + caught(700, 4) + caught(700, 5);
    printf("deep_exceptions %ld %d\n", sum, destroyed);
}
static int again(int n) {
    try {
        return deep(n % 10, n);
    } catch (...) {
        Guard guard{100};
        if (n % 2) throw;
        std::throw_with_nested(std::logic_error("outer"));
    }
}
static void rethrown() {
    long sum = 0;
    for (int i = 0; i < 60; i++) {
        try {
            sum += again(i);
        } catch (const std::nested_exception &e) {
            try {
                e.rethrow_nested();
            } catch (int inner) {
                sum += inner;
            } catch (const std::exception &inner) {
                sum += std::string(inner.what()).size();
            }
        } catch (...) {
            sum += 7;
        }
    }
    printf("rethrown %ld %d\n", sum, destroyed);
}
// Exceptions that are thrown while another one unwinds.
struct Thrower {
    ~Thrower() {
        try {
            deep(5, 3);
        } catch (int i) {
            destroyed += i;
        }
    }
};
static void while_unwinding() {
    for (int i = 0; i < 100; i++) {
        try {
            Thrower one, two;
            deep(3, 4);
        } catch (const std::exception &) {
            destroyed++;
        }
    }
    printf("while_unwinding %d %d\n", destroyed, std::uncaught_exceptions());
}
static void across_threads() {
    long sum = 0;
    for (int i = 0; i < 60; i++) {
        auto result = std::async(std::launch::async, [i] { return deep(i % 7, i); });
        try {
            sum += result.get();
        } catch (int n) {
            sum += n;
        } catch (const std::exception &e) {
            sum += std::stol(e.what());
        }
    }
    std::vector<std::thread> threads;
    std::atomic<long> total{0};
    for (int i = 0; i < 64; i++)
        threads.emplace_back([&total, i] {
            for (int n = 0; n < 4; n++) total += caught(i % 9, n);
        });
    for (auto &t : threads) t.join();
    printf("across_threads %ld %ld\n", sum, total.load());
}
// Through frames of C: qsort, and a handler of a signal.
static int compares(const void *a, const void *b) { return thrower(*(const int *)a * 3); }
static void through_c() {
    int numbers[] = {3, 1, 2}, seen = 0;
    for (int i = 0; i < 50; i++) {
        try {
            std::qsort(numbers, 3, sizeof *numbers, compares);
        } catch (int) {
            seen++;
        }
    }
    printf("through_c %d\n", seen);
}
static void throws(int n) { thrower(n * 3); }
static volatile int *volatile nowhere;
ALONE static int faults() { return *nowhere + 1; }
// That of libc is declared as one that throws nothing.
static int (*volatile raises)(int) = raise;
static void through_handlers() {
    struct sigaction action = {};
    action.sa_handler = throws;
    action.sa_flags = SA_NODEFER;
    sigaction(SIGSEGV, &action, nullptr);
    sigaction(SIGUSR1, &action, nullptr);
    int seen = 0;
    for (int i = 0; i < 100; i++) {
        try {
            faults();
        } catch (int n) {
            seen += n == SIGSEGV * 3;
        }
        try {
            raises(SIGUSR1);
        } catch (int n) {
            seen += n == SIGUSR1 * 3;
        }
    }
    signal(SIGSEGV, SIG_DFL);
    signal(SIGUSR1, SIG_DFL);
    printf("through_handlers %d\n", seen);
}
static void across_libraries() {
    long sum = 0;
    const char *path = getenv("HAZARDS_LIBRARY_CC");
    for (int i = 0; i < 20 && path; i++) {
        void *library = dlopen(path, RTLD_NOW);
        if (!library) printf("%s\n", dlerror());
        auto calls_back = (int (*)(int (*)(int), int))dlsym(library, "calls_back");
        auto catches = (int (*)(int (*)(int), int))dlsym(library, "catches");
        try {
            sum += calls_back(thrower, i);
        } catch (int n) {
            sum += n;
        } catch (const std::exception &e) {
            sum += std::stol(e.what());
        }
        sum += catches(thrower, i) * 100;
        dlclose(library);
    }
    printf("across_libraries %ld\n", sum);
}

// C++20 coroutines.
struct Numbers {
    struct promise_type {
        int value;
        std::exception_ptr failure;
        Numbers get_return_object() { return Numbers{std::coroutine_handle<promise_type>::from_promise(*this)}; }
        std::suspend_always initial_suspend() { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        std::suspend_always yield_value(int n) {
            value = n;
            return {};
        }
        void return_void() {}
        void unhandled_exception() { failure = std::current_exception(); }
    };
    std::coroutine_handle<promise_type> handle;
    bool next() {
        handle.resume();
        if (handle.promise().failure) std::rethrow_exception(handle.promise().failure);
        return !handle.done();
    }
};
extern "C" ALONE int step(int n) {
    COUNT(step);
    return middle(n);
}
static Numbers numbers(int last) {
    Guard guard{1};
    for (int i = 0; i < last; i++) co_yield step(i);
    if (last % 2) throw last;
}
static void coroutines() {
    long sum = 0;
    for (int i = 0; i < 50; i++) {
        Numbers all = numbers(i);
        try {
            while (all.next()) sum += all.handle.promise().value;
        } catch (int n) {
            sum += n * 10000;
        }
        all.handle.destroy();
    }
    printf("coroutines %ld\n", sum);
}

// Adjusted `this`, results of other types, and what is called through both.
struct A {
    virtual ~A() {}
    virtual A *self() { return this; }
    virtual int value(int n) { return n; }
    int a = 1;
};
struct B {
    virtual ~B() {}
    virtual B *other() { return this; }
    virtual int weight(int n, double by) { return n * by; }
    int b = 2;
};
struct C : virtual A, B {
    C *self() override { return this; }
    C *other() override { return this; }
    int value(int n) override { return leaf(n) + c; }
    int weight(int n, double by) override { return middle(n) * by + b; }
    int c = 3;
};
static void thunks() {
    std::unique_ptr<A> a(new C);
    C c;
    B *b = &c;
    long sum = 0;
    for (int i = 0; i < 100; i++) {
        sum += a->value(i) + a->self()->a + b->weight(i, 1.5) + b->other()->b;
        int (C::*member)(int) = &C::value;
        sum += (c.*member)(i);
        std::function<int(int)> function = [&](int n) { return leaf(n) + i; };
        sum += function(i);
    }
    printf("thunks %ld\n", sum);
}
// Exceptions that pass calls which another thread has begun.
static std::atomic<long> handed_sum;
extern "C" ALONE int hands(struct fiber *f, int depth, int n) {
    Guard guard{1};
    COUNT(hands);
    if (depth == 0) {
        leave_fiber(f);
        return thrower(n);
    }
    int inner = hands(f, depth - 1, n);
    if (depth % 3 == 0) leave_fiber(f);
    return inner + 1;
}
static void hander(struct fiber *f) {
    for (int i = 0; i < HANDS; i++) {
        long value = 0;
        int depth = (f->id * 7 + i) % 13;
        try {
            value = hands(f, depth, i) + hands(f, depth / 2, i + 1);
        } catch (int n) {
            value = n * 1000L;
        } catch (const std::exception &e) {
            value = -std::stol(e.what());
        }
        handed_sum += value;
        if (i % 2) leave_fiber(f);
    }
}
[[maybe_unused]] static void handed_exceptions() {
    destroyed = 0;
    handed_sum = 0;
    for (int i = 0; i < 4; i++) hand_around(hander, i / 2, i % 2);
    printf("handed_exceptions %ld %d\n", handed_sum.load(), destroyed);
}
static thread_local Guard local_guard{1000};
static void thread_storage() {
    destroyed = 0;
    for (int i = 0; i < 20; i++) std::thread([] { local_guard.n += 1; }).join();
    printf("thread_storage %d\n", destroyed);
}
static int once() {
    static int value = middle(4);
    return value;
}
static void statics() {
    std::vector<std::thread> threads;
    std::atomic<int> sum{0};
    for (int i = 0; i < 8; i++) threads.emplace_back([&] { sum += once(); });
    for (auto &t : threads) t.join();
    printf("statics %d\n", sum.load());
}
// Exceptions that nobody catches, or that may not pass.
static void Uncaught() {
    fflush(stdout);
    deep(10, 4);
}
static void stays() noexcept { deep(4, 3); }
static void Not_allowed() { stays(); }
static void Terminated() {
    std::set_terminate([] {
        try {
            throw;
        } catch (int n) {
            printf("terminated %d\n", n);
            fflush(stdout);
            _Exit(5);
        }
    });
    std::thread([] { deep(4, 3); }).join();
}

int main(int argc, char **argv) {
    static const struct scenario all[] = {
        {"exceptions", exceptions}, {"deep_exceptions", deep_exceptions}, {"rethrown", rethrown},
        {"while_unwinding", while_unwinding}, {"across_threads", across_threads}, {"through_c", through_c},
        {"through_handlers", through_handlers}, {"across_libraries", across_libraries}, {"coroutines", coroutines},
#ifndef NO_HANDS
        {"handed_exceptions", handed_exceptions},
#endif
        {"thunks", thunks}, {"thread_storage", thread_storage}, {"statics", statics}, {"Uncaught", Uncaught},
        {"Not_allowed", Not_allowed}, {"Terminated", Terminated}, {NULL, NULL},
    };
    return run_scenarios(all, argc, argv);
}
