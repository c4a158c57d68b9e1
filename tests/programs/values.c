/* Arguments and results of many kinds, and pointers that lead nowhere. */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define KEPT __attribute__((noinline, noclone))
/* Keeps a value, and what it may lead to. */
#define USE(x) __asm__ volatile("" : : "g"(x) : "memory")

enum color { RED, GREEN = 5, BLUE = -2 };
struct point {
    int x;
    const char *name;
    char tag[8];
};
struct pair {
    double d;
    long n;
};
struct large {
    long a, b, c;
};

KEPT long integers(signed char a, unsigned char b, short c, unsigned d, long e, bool f, char g, uint64_t h) {
    USE(a); USE(b); USE(c); USE(d); USE(e); USE(f); USE(g); USE(h);
    return -e;
}
KEPT double floats(float a, double b, long double c) {
    USE(a); USE(b); USE(&c);
    return a + b;
}
KEPT long double wide(int n) {
    USE(n);
    return n / 4.0L;
}
KEPT const char *text(const char *s, char *t) {
    USE(s); USE(t);
    return s;
}
KEPT enum color colors(enum color a, enum color b) {
    USE(a); USE(b);
    return a;
}
KEPT struct point *pointed(struct point *p, void *q) {
    USE(p); USE(q);
    return p;
}
KEPT struct pair by_value(struct pair p, struct large l) {
    USE(p.n); USE(l.c);
    return (struct pair){p.d + 1, p.n + 1};
}
KEPT struct large large(int n) {
    USE(n);
    return (struct large){n, n + 1, n + 2};
}
KEPT __int128 huge(__int128 n) {
    USE((long)n);
    return -n;
}
KEPT void nothing(void) {
    USE(0);
    __asm__ volatile("nop; nop; nop; nop; nop; nop");
}
KEPT int changing(const char *s) {
    USE(s);
    return 1;
}

static char shared[32] = "aaaaaaaaaaaaaaaaaaaaaaaa";
static volatile bool done;

static void *change(void *unused) {
    for (char c = 'a'; !done; c = c == 'z' ? 'a' : c + 1)
        memset(shared, c, 24);
    return unused;
}

int main(void) {
    long page = sysconf(_SC_PAGESIZE);
    char *memory = mmap(0, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(memory + page, page);
    memcpy(memory + page - 4, "edge", 4);
    struct point p = {7, "origin\n\x1b[0m", "tag"}, *wild = (struct point *)16;
    USE(&p);
    integers(-1, 200, -300, 4000000000u, -5, true, 'g', UINT64_MAX);
    floats(1.5f, -2.25, 3.5L);
    wide(3);
    text("hello", "a text that is longer than thirty-two bytes");
    text(0, "");
    text((char *)16, memory + page - 4);
    text((char *)0xffff800000000000, (char *)-1);
    colors(GREEN, BLUE);
    colors((enum color)77, RED);
    pointed(&p, (void *)0x1234);
    pointed(wild, 0);
    pointed(0, 0);
    pointed((struct point *)(memory + page - 8), 0);
    by_value((struct pair){0.5, 9}, (struct large){1, 2, 3});
    large(4);
    huge((__int128)1 << 100);
    nothing();
    pthread_t other;
    pthread_create(&other, 0, change, 0);
    int calls = 0;
    for (int i = 0; i < 200; i++)
        calls += changing(shared);
    done = true;
    pthread_join(other, 0);
    printf("%d\n", calls);
    return 0;
}
