/* Fibonacci numbers, the slow way: so many calls of so little. With -DSTAMPS two time stamps are read in each call. */
#include <stdio.h>
#include <stdlib.h>
#ifdef STAMPS
#include <x86intrin.h>
static volatile unsigned long long stamps[2];
#define STAMP(n) (stamps[n] = __rdtsc())
#else
#define STAMP(n) ((void)0)
#endif

__attribute__((noinline)) static long fib(int n)
{
	long result;

	STAMP(0);
	result = n < 2 ? n : fib(n - 1) + fib(n - 2);
	STAMP(1);
	return result;
}

int main(int argc, char **argv)
{
	printf("%ld\n", fib(argc > 1 ? atoi(argv[1]) : 10));
	return 0;
}
