// Threads that wait below known functions, to be looked at from outside: the first in read(2) of its standard input, below calls of themselves and a
// tail call, the others in pause(2). Says which process it is.
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#define ALONE __attribute__((noinline))

ALONE int leaf(int n)
{
	__asm__ volatile("" ::: "rbx", "r12");
	return n * 3;
}

ALONE int innermost(int n)
{
	char c;
	long got = read(0, &c, 1);
	int r = leaf(n) + leaf((int)got);
	__asm__ volatile("");
	return r;
}

ALONE int middle(int n)
{
	int r = n ? middle(n - 1) : innermost(n);
	__asm__ volatile("");
	return r + 1;
}

ALONE int hands_on(int n)
{
	return middle(n);
}

ALONE int outer(int n)
{
	int r = hands_on(n);
	__asm__ volatile("");
	return r + 1;
}

ALONE int waits(int n)
{
	pause();
	__asm__ volatile("");
	return n;
}

static void *other(void *p)
{
	int n = waits(p != 0);
	return n ? p : 0;
}

int main(void)
{
	pthread_t threads[3];
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], 0, other, &threads[i]);
	printf("ready %d\n", getpid());
	fflush(stdout);
	_exit(outer(3) == 0);
}
