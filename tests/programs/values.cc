// Arguments and results of C++: references, this, strings, classes.
#include <cstdint>
#include <cstdio>
#include <string>

#define KEPT __attribute__((noinline, noclone))
#define USE(x) __asm__ volatile("" : : "g"(x) : "memory")

namespace shop {
enum class Size : uint8_t { Small = 1, Large = 200 };

struct Item {
    virtual ~Item() {}
    int price = 12;
    const char *name = "pear";
    KEPT int cost(int n) const {
        USE(this); USE(n);
        return price * n;
    }
};

KEPT int &grow(int &n, const int &by) {
    n += by;
    USE(&n); USE(&by);
    return n;
}
KEPT size_t length(const std::string &s, std::string copy) {
    USE(&s); USE(&copy);
    return s.size();
}
KEPT Size size(Size s, bool b) {
    USE(s); USE(b);
    return s;
}
template <typename T> KEPT T twice(T n) {
    USE(&n);
    return n + n;
}
} // namespace shop

int main() {
    shop::Item item;
    int n = 40, by = 2;
    USE(&item);
    item.cost(3);
    shop::grow(n, by);
    shop::length("short", "a string that does not fit into the object");
    shop::size(shop::Size::Large, false);
    shop::twice(1.25);
    shop::twice<unsigned short>(9);
    return 0;
}
