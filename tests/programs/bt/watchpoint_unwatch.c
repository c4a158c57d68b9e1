/* Writes once in a function, and four times a second later. */
#include <stdlib.h>
#include <unistd.h>

__attribute__((noinline)) void increment(int *at)
{
	(*at)++;
}

int main(void)
{
	volatile int *at = calloc(1, sizeof *at);
	increment((int *)at);
	sleep(1);
	for (int i = 0; i < 4; i++)
		(*at)++;
	return 0;
}
