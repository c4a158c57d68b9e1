/* Calls a function with one address again and again. */
#include <stdlib.h>
#include <unistd.h>

__attribute__((noinline)) void increment(int unused, int *at)
{
	(*at)++;
}

int main(void)
{
	int *at = calloc(1, sizeof *at);
	for (int i = 0; i < 5000; i++) {
		increment(0, at);
		(*at)++;
		usleep(1000);
	}
	return 0;
}
