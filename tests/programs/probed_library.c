// With LIBRARY, functions that begin in different ways and call themselves through the table of their library; else a program that calls each of them
// a hundred times when its standard input ends, and prints how often they say that was.
#ifdef LIBRARY
int u_a(int n)
{
	int r = n > 1 ? u_a(n - 1) : 0;
	__asm__ volatile("" : "+r"(r)::"rbx");
	return r + 1;
}
int u_b(int n)
{
	volatile int room[8];
	room[n & 7] = n > 1 ? u_b(n - 1) : 0;
	return room[n & 7] + 1;
}
int u_c(int n)
{
	if (n < 2)
		return 1;
	int r = u_c(n - 1);
	__asm__ volatile("" : "+r"(r));
	return r + 1;
}
#else
#include <poll.h>
#include <stdio.h>
int u_a(int), u_b(int), u_c(int);
int main(void)
{
	struct pollfd input = {.fd = 0, .events = POLLIN};
	poll(&input, 1, -1);
	int a = u_a(100), b = u_b(100), c = u_c(100);
	printf("%d\n", a);
	return a != b || b != c;
}
#endif
