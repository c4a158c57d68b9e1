/* Two functions that are called at the same place of the stack, each by its own caller, ten million times a second. */
#include <stdlib.h>

#define ALONE __attribute__((noinline))

static volatile unsigned long sum;

ALONE void both(int n) {
    for (int i = 0; i < n; i++)
        sum += i;
}

ALONE void left(int n) {
    both(n);
    __asm__ volatile("");
}

ALONE void right(int n) {
    both(n);
    __asm__ volatile("");
}

ALONE void of_left(int n) {
    left(n);
    __asm__ volatile("");
    left(n + 1);
    __asm__ volatile("");
}

ALONE void of_right(int n) {
    right(n);
    __asm__ volatile("");
    right(n + 1);
    __asm__ volatile("");
}

int main(int argc, char **argv) {
    for (long i = argc > 1 ? atol(argv[1]) : 1; i > 0; i--)
        of_left(i & 15), of_right(i & 7);
    return 0;
}
