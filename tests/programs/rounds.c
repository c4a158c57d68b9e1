// Works once for each byte on stdin, inside of a function that waits for it, and says so. The calls of a round are known: fib 1973, leaf 600,
// middle 300.
#include <stdio.h>
#include <unistd.h>

__attribute__((noinline)) int leaf(int n) { __asm__ volatile(""); return n * 3 + 7; }
__attribute__((noinline)) int middle(int n) { return leaf(n) + leaf(n + 1) + 1; }
__attribute__((noinline)) long fib(long n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

__attribute__((noinline)) int round_of_calls(void) {
    char byte;
    if (read(0, &byte, 1) != 1) return 0;
    long sum = fib(15);
    for (int i = 0; i < 300; i++) sum += middle(i);
    printf("%ld\n", sum);
    fflush(stdout);
    return 1;
}

int main(void) {
    puts("begun");
    fflush(stdout);
    while (round_of_calls()) {}
    return 0;
}
