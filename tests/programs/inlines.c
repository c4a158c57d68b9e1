// Functions that are inlined into each other, in several depths and places; a cold part; labels of the assembler; calls of libraries.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

volatile int sink;

INLINE int innermost(int x) {
    sink = x;
    return x * 3 + sink;
}

INLINE int inner(int x) {
    int y = innermost(x + 1);
    return y + innermost(y);
}

INLINE int middle(int x) {
    for (int i = 0; i < 3; i++)
        x += inner(x ^ i);
    return x;
}

__attribute__((noinline)) int outer(int x) {
    if (__builtin_expect(x < 0, 0)) {
        fprintf(stderr, "negative %d\n", inner(x));
        abort();
    }
    return middle(x) + inner(x);
}

__attribute__((noinline)) static int local(const char *text) {
    return (int)strlen(text) + innermost(text[0]);
}

int aliased(int x) { return inner(x) + 1; }
extern int __aliased_too(int x) __attribute__((alias("aliased")));
extern int weak_alias(int x) __attribute__((weak, alias("aliased")));

__asm__(".text\n.globl unsized\nunsized:\n nop\n nop\n nop\nunsized_end_label:\n nop\n ret\n");
void unsized(void);

__attribute__((constructor)) static void before(void) { sink = 1; }

int main(int argc, char **argv) {
    unsized();
    printf("%d %d %d\n", outer(argc), local(argv[0]), aliased(argc));
    return 0;
}
