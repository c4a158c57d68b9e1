// Templates, lambdas and classes that are inlined into each other.
#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

namespace acme {
template <typename T> static inline T twice(T t) { return t + t; }

class Box {
  public:
    explicit Box(int n) : n_(n) {}
    virtual ~Box() {}
    __attribute__((noinline)) virtual int open(const std::string &key) const {
        return twice(n_) + static_cast<int>(key.size());
    }

  private:
    int n_;
};

struct Lid : Box {
    using Box::Box;
    __attribute__((noinline)) int open(const std::string &key) const override {
        auto count = [&](char c) { return std::count(key.begin(), key.end(), c); };
        return static_cast<int>(count('a') * count('b')) + Box::open(key);
    }
};
} // namespace acme

namespace {
__attribute__((noinline)) int hidden(std::vector<int> &all) {
    std::sort(all.begin(), all.end(), [](int a, int b) { return acme::twice(a) < acme::twice(b); });
    return all.front();
}
} // namespace

int main(int argc, char **argv) {
    std::map<std::string, int> counts;
    std::vector<int> all;
    for (int i = 0; i < argc + 20; i++) {
        counts[argv[0] + std::to_string(i)] += i;
        all.push_back(i * 7 % 5);
    }
    acme::Lid lid(argc);
    std::printf("%d %d %zu\n", lid.open(argv[0]), hidden(all), counts.size());
    return 0;
}
