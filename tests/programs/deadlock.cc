// Eight threads, each with a mutex of its own, each after that of the next one.
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>
constexpr int N = 8;
struct Fork {
    std::mutex mutex;
    int uses = 0;
};
static Fork forks[N];
static std::mutex gate;
static std::condition_variable opened;
static int seated = 0;
static void philosopher(int i)
{
    std::lock_guard<std::mutex> left(forks[i].mutex);
    {
        std::unique_lock<std::mutex> lock(gate);
        if (++seated == N)
            opened.notify_all();
        opened.wait(lock, [] { return seated == N; });
    }
    std::lock_guard<std::mutex> right(forks[(i + 1) % N].mutex);
    forks[i].uses++;
}
int main()
{
    std::vector<std::thread> threads;
    for (int i = 0; i < N; i++)
        threads.emplace_back(philosopher, i);
    for (auto &thread : threads)
        thread.join();
}
