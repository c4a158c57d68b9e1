// Exceptions through many frames, some of which are tail calls, caught, thrown again and thrown by destructors' callers.
#include <cstdio>
#include <stdexcept>
#include <string>
#include <thread>

static int destroyed;
struct Guard {
    int n;
    ~Guard() { destroyed += n; }
};

int thrower(int n) {
    if (n % 3 == 0) throw n;
    throw std::runtime_error(std::to_string(n));
}
int tail(int n) { return thrower(n); }
int tail_of_tail(int n) { return tail(n + 1); }

int deep(int depth, int n) {
    Guard guard{1};
    if (depth == 0) return tail_of_tail(n);
    return deep(depth - 1, n) + 1;
}

int again(int n) {
    try {
        return deep(20, n);
    } catch (const std::exception &e) {
        if (n % 2) throw;
        return std::stoi(e.what());
    }
}

long round_of(int n) {
    long sum = 0;
    try {
        sum += again(n);
    } catch (int i) {
        sum += i * 1000;
    } catch (const std::exception &e) {
        sum -= std::stol(e.what());
    }
    return sum;
}

int main() {
    long sum = 0;
    for (int i = 0; i < 1000; i++) sum += round_of(i);
    std::thread other([&] {
        for (int i = 0; i < 100; i++) sum += round_of(i);
    });
    other.join();
    printf("%ld %d\n", sum, destroyed);
}
