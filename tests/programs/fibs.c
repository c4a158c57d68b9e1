/* For each number on the standard input: fib of it, the slow way, and the time of the processor that took, in ns. */
#include <stdio.h>
#include <time.h>

__attribute__((noinline)) static long fib(int n)
{
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

static long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000 + t.tv_nsec;
}

int main(void)
{
	int n;

	while (scanf("%d", &n) == 1) {
		long begin = now(), result = fib(n);

		printf("%ld %ld\n", result, now() - begin);
		fflush(stdout);
	}
	return 0;
}
