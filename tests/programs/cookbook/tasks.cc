// Four coroutines that wait for each other's turns: two threads resume whichever is ready. The third one works the longest.
#include <coroutine>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <thread>
#include <unistd.h>

static std::mutex lock;
static std::deque<std::coroutine_handle<>> ready;
static int left = 4;

struct Task {
    struct promise_type {
        Task get_return_object() { return {}; }
        std::suspend_always initial_suspend() { ready.push_back(std::coroutine_handle<promise_type>::from_promise(*this)); return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        void return_void() {}
        void unhandled_exception() { abort(); }
    };
};

// Lets the others go on first.
struct Turn {
    bool await_ready() { return false; }
    void await_suspend(std::coroutine_handle<> task) { std::lock_guard guard(lock); ready.push_back(task); }
    void await_resume() {}
};

static Task fetch(int number) {
    for (int step = 0; step < 3; step++) {
        usleep(number == 3 ? 20000 : 1000);
        co_await Turn{};
    }
}

static void run() {
    for (;;) {
        std::coroutine_handle<> task;
        {
            std::lock_guard guard(lock);
            if (left == 0)
                return;
            if (!ready.empty()) {
                task = ready.front();
                ready.pop_front();
            }
        }
        if (!task) {
            usleep(100);
            continue;
        }
        task.resume();
        if (task.done()) {
            task.destroy();
            std::lock_guard guard(lock);
            left--;
        }
    }
}

int main() {
    for (int number = 1; number <= 4; number++)
        fetch(number);
    std::thread other(run);
    run();
    other.join();
}
