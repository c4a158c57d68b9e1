// Tracers that write down what they are told, for requests that come between calls, and inside of one. Arguments: the name of a socket, how
// often to ask the agent, and `calls`, `open` or `deep`. Each line is what the tracers were told since the last one.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "trapline_tracer.h"

#define KEEP __attribute__((noinline, noclone))

static char *book;
static size_t used;
static const char *socket_name;
static volatile int state;

KEEP void two(void) { state = state + 1; __asm__ volatile("nop; nop; nop; nop; nop"); }
KEEP void one(void) { two(); state = state + 1; }
KEEP void inner(void) { state = state + 1; __asm__ volatile("nop; nop; nop; nop; nop"); }
KEEP void outer(void) {
    inner();
    trapline_ask(2, socket_name, strlen(socket_name));
    inner();
    state = state + 1;
}
KEEP long descend(long n) {
    long below = n ? descend(n - 1) : 0;
    state = state + 1;
    return below + 1;
}

// Called by one thread at a time; no memcpy, which may use any register.
static void note(const char *who, char what, const struct trapline_function *f) {
    const char *name = f->address == one ? "one" : f->address == two ? "two" : f->address == outer ? "outer" : "inner";
    if (used + 32 > 1 << 16) return;
    if (used) book[used++] = ' ';
    for (const char *c = who; *c; c++) book[used++] = *c;
    book[used++] = what;
    for (const char *c = name; *c; c++) book[used++] = *c;
    book[used] = 0;
}

#define BOTH(name) \
    static void name##_enter(const struct trapline_function *f, const void *c, unsigned d) { (void)c; (void)d; note(#name, '+', f); } \
    static void name##_exit(const struct trapline_function *f, unsigned d) { (void)d; note(#name, '-', f); }
BOTH(a)
BOTH(b)
BOTH(c)
BOTH(enters)
BOTH(exits)

static void calls_enter(const struct trapline_function *f, const void *c, unsigned d) { (void)c; (void)d; note("calls", '+', f); one(); }
static void calls_exit(const struct trapline_function *f, unsigned d) { (void)d; one(); note("calls", '-', f); }

static unsigned long entered, left, wrong;
static unsigned open_calls, deepest;
static void deep_enter(const struct trapline_function *f, const void *c, unsigned d) {
    (void)f; (void)c;
    if (open_calls++ && d != deepest + 1) wrong++;
    deepest = d;
    entered++;
}
static void deep_exit(const struct trapline_function *f, unsigned d) {
    (void)f;
    if (open_calls == 0 || d + left != deepest) wrong++;
    open_calls--;
    left++;
}

static struct trapline_tracer all[] = {
    {1, TRAPLINE_FLAGS, "a", a_enter, a_exit},
    {1, TRAPLINE_FLAGS, "b", b_enter, b_exit},
    {1, TRAPLINE_FLAGS, "c", c_enter, c_exit},
    {1, TRAPLINE_FLAGS, "enters", enters_enter, 0},
    {1, TRAPLINE_FLAGS, "exits", 0, exits_exit},
    {1, TRAPLINE_FLAGS, "calls", calls_enter, calls_exit},
    {1, TRAPLINE_FLAGS, "deep", deep_enter, deep_exit},
};

static void *body(void *n) { return (void *)descend((long)n); }

static void ask(void) { trapline_ask(2, socket_name, strlen(socket_name)); }

static void say(void) {
    printf("%s\n", book);
    book[used = 0] = 0;
}

int main(int argc, char **argv) {
    int rounds = atoi(argv[2]);
    const char *what = argc > 3 ? argv[3] : "calls";
    socket_name = argv[1];
    book = calloc(1, 1 << 16);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (trapline_register(&all[i])) return 1;
    if (!strcmp(what, "deep")) {
        enum { LEVELS = 100000 };
        for (int r = 0; r < rounds; r++) {
            ask();
            pthread_attr_t attr;
            pthread_t t;
            void *levels;
            entered = left = wrong = open_calls = deepest = 0;
            pthread_attr_init(&attr);
            pthread_attr_setstacksize(&attr, 1 << 28);
            if (pthread_create(&t, &attr, body, (void *)(long)(LEVELS - 1))) return 2;
            pthread_join(t, &levels);
            printf("%ld %lu %lu %u %lu\n", (long)levels, entered, left, open_calls, wrong);
        }
        return 0;
    }
    for (int r = 0; r < rounds; r++) {
        ask();
        if (!strcmp(what, "open")) {
            outer();
            r++;
            say();
            outer();
            r++;
        } else {
            one();
        }
        say();
    }
    return 0;
}
