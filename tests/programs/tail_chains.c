/* Tail calls: a chain of as many as it is told, by two functions and by three, and an ordinary call at its end. */
#include <stdio.h>
#include <stdlib.h>

#define OWN __attribute__((noinline, noipa))
static volatile long calls;
OWN long last(void) { return ++calls; }
OWN long odd(long n);
OWN long even(long n) { return n ? odd(n - 1) : last(); }
OWN long odd(long n) { return n ? even(n - 1) : last(); }
OWN long two(long n);
OWN long three(long n);
OWN long one(long n) { return n ? two(n - 1) : last() + 1; }
OWN long two(long n) { return n ? three(n - 1) : last() + 2; }
OWN long three(long n) { return n ? one(n - 1) : last() + 3; }
OWN long twice(long n) { long first = even(n); return first + one(n); }

int main(int argc, char **argv)
{
    long n = argc > 1 ? atol(argv[1]) : 100;
    printf("%ld\n", twice(n) + even(n));
}
