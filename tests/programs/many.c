/* many.c - 90 functions, many_10 to many_99; many_N is called N modulo 7 times, with 0, 1, 2 … as its argument, and returns the
 * argument plus N. Prints the sum of what they return. Between them many_locked is called, whose first instruction takes no
 * breakpoint. */
#include <stdio.h>

int locked;
void many_locked(void);
__asm__(".text\n.globl many_locked\n.type many_locked, @function\nmany_locked:\n\tlock incl locked(%rip)\n\tret\n"
        ".size many_locked, . - many_locked\n");

#define ONE(n) __attribute__((noinline)) int many_##n(int x) { __asm__ volatile("" : "+r"(x)); return x + n; }
#define TEN(t) ONE(t##0) ONE(t##1) ONE(t##2) ONE(t##3) ONE(t##4) ONE(t##5) ONE(t##6) ONE(t##7) ONE(t##8) ONE(t##9)
TEN(1) TEN(2) TEN(3) TEN(4) TEN(5) TEN(6) TEN(7) TEN(8) TEN(9)

#define NAME(n) many_##n,
#define NAMES(t) NAME(t##0) NAME(t##1) NAME(t##2) NAME(t##3) NAME(t##4) NAME(t##5) NAME(t##6) NAME(t##7) NAME(t##8) NAME(t##9)
static int (*const all[])(int) = { NAMES(1) NAMES(2) NAMES(3) NAMES(4) NAMES(5) NAMES(6) NAMES(7) NAMES(8) NAMES(9) };

int main(void)
{
    long sum = 0;
    many_locked();
    for (int n = 10; n < 100; n++)
        for (int i = 0; i < n % 7; i++)
            sum += all[n - 10](i);
    printf("%ld\n", sum);
    return 0;
}
