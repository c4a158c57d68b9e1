/* Calls a function with more addresses than a processor has debug registers. */
#include <stdlib.h>

__attribute__((noinline)) void increment(int *at)
{
	(*at)++;
}

int main(void)
{
	for (int i = 0; i < 20; i++)
		increment(calloc(1, sizeof(int)));
	return 0;
}
