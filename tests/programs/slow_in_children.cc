// Calls that take long, each the first of its thread or process: in threads of the C++ library, in a child of fork of such a thread, and in one that
// returns through calls that its parent has made, and makes another.
#include <chrono>
#include <future>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#define OWN extern "C" __attribute__((noinline, noipa))
static volatile int calls;
OWN void slow(int ms) {
    std::this_thread::sleep_for(std::chrono::milliseconds(ms));
    calls = calls + 1;
}
OWN void outer(int ms) {
    slow(ms);
    calls = calls + 1;
}
OWN void brief() { calls = calls + 1; }
OWN void child() {
    outer(30);
    brief();
}
OWN int forks() {
    pid_t pid = fork();
    if (pid == 0) {
        child();
        _exit(0);
    }
    waitpid(pid, nullptr, 0);
    return 0;
}
OWN int returns_twice() {
    slow(20);
    pid_t pid = fork();
    slow(20);
    return pid;
}
OWN int around() {
    int pid = returns_twice();
    calls = calls + 1;
    return pid;
}
int main() {
    std::vector<std::thread> all;
    for (int i = 0; i < 3; i++)
        all.emplace_back([] {
            for (int k = 0; k < 100; k++) brief();
            outer(20);
        });
    auto one = std::async(std::launch::async, forks);
    for (auto &t : all) t.join();
    one.get();
    pid_t pid = around();
    if (pid) waitpid(pid, nullptr, 0);
    return pid ? 7 : 0;
}
