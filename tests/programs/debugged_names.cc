// Says which process it is; once a line has come from its standard input, calls virtual functions, one that throws, and one that calls itself, as often
// as its argument says. Its status is what came out.
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

#define OWN __attribute__((noinline))
static volatile int calls;
struct Shape {
    virtual int area(int n) = 0;
};
struct Square : Shape {
    OWN int area(int n) override {
        calls = calls + 1;
        return n * n;
    }
};
struct Circle : Shape {
    OWN int area(int n) override {
        calls = calls + 2;
        return n * 3;
    }
};
OWN int leaf(int n) {
    if (n % 7 == 3) throw n;
    return n + 1;
}
OWN int catches(int n) {
    try {
        return leaf(n);
    } catch (int m) {
        return -m;
    }
}
OWN long deep(int n) { return n == 0 ? 0 : deep(n - 1) + n; }

int main(int argc, char **argv) {
    printf("ready %d\n", getpid());
    fflush(stdout);
    if (getchar() != '\n' || argc < 2) return 1;
    Square square;
    Circle circle;
    Shape *all[] = {&square, &circle};
    long sum = 0;
    for (int n = atoi(argv[1]); n > 0; n--) sum += all[n % 2]->area(n) + catches(n) + deep(n % 5);
    return (sum + calls) % 113;
}
