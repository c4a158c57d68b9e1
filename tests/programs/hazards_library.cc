// A library through which exceptions pass, and which catches and throws its own.
#include <stdexcept>
#include <string>
struct Guard {
    int *n;
    ~Guard() { ++*n; }
};
static int passed;
__attribute__((noinline)) static int inner(int (*function)(int), int n) {
    Guard guard{&passed};
    return function(n) + 1;
}
extern "C" int calls_back(int (*function)(int), int n) { return inner(function, n) + passed; }
extern "C" int catches(int (*function)(int), int n) {
    try {
        return inner(function, n);
    } catch (int i) {
        return i + passed;
    } catch (const std::exception &e) {
        try {
            throw std::string(e.what());
        } catch (const std::string &s) {
            return s.size();
        }
    }
}
