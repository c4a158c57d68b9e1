// Adds to a total, which another function sets back.
#include <stdlib.h>

__attribute__((noinline)) void add(long *to, long n)
{
	if (n > 0)
		*to += n;
	__asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) void reset(long *what)
{
	*what = 0;
	__asm__ volatile("" ::: "memory");
}

int main(void)
{
	long *total = calloc(1, sizeof *total);
	for (int i = 1; i <= 5; i++) {
		add(total, i);
		if (i == 3)
			reset(total);
	}
	return *total == 9 ? 0 : 1;
}
