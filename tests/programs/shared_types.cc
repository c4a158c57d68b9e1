// One program of two parts, compiled with -DPART=0 and -DPART=1: both take values of the same types, and of types of their own.
#include <cstdio>
#include <string>

namespace shapes {
enum class Shade : short { dark = -3, light = 7 };
struct Point {
    int x;
    long y;
    const char *name;
    Shade shade;
};
struct Pair {
    int a, b;
};
class Base {
  public:
    virtual ~Base() {}
    virtual int size() const { return kept_; }

  protected:
    int kept_ = 5;
};
} // namespace shapes

#define TRACED extern "C" __attribute__((noinline))
using namespace shapes;

TRACED int second(const Point *p, Pair pair);
#if PART
struct Wide {
    double d;
    short parts[4];
    union {
        int i;
        float f;
    } either;
};
TRACED int wide(const Wide *w, Shade shade) {
    asm volatile("" ::: "memory");
    return w->parts[1] + w->either.i + static_cast<int>(shade);
}
TRACED int second(const Point *p, Pair pair) {
    Wide w{1.5, {1, 2, 3, 4}, {11}};
    asm volatile("" ::: "memory");
    return wide(&w, p->shade) + pair.b + static_cast<int>(p->y);
}
#else
struct Derived : Base {
    int size() const override { return 2 * kept_; }
    std::string label = "label";
};
TRACED Pair first(const Point *p, Pair pair, const std::string &s) {
    asm volatile("" ::: "memory");
    return {p->x + pair.a, static_cast<int>(s.size())};
}
TRACED int third(const Derived &d, Shade shade) {
    asm volatile("" ::: "memory");
    return d.size() + static_cast<int>(shade);
}
int main() {
    Derived d;
    Point p{1, 2, "hello", Shade::dark};
    int n = 0;
    for (int i = 0; i < 3; i++) {
        Pair pair = first(&p, Pair{i, 9}, d.label);
        n += pair.a + pair.b + second(&p, pair) + third(d, Shade::light);
    }
    std::printf("%d\n", n);
    return 0;
}
#endif
