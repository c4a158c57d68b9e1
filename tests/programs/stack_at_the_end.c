/* A call below known functions that blocks for good, or, with an argument, a fault there. */
#include <unistd.h>

static volatile int sink;

__attribute__((noinline)) void innermost(volatile int *nowhere)
{
	if (nowhere)
		pause();
	else
		*nowhere = 1;
	sink++;
}

__attribute__((noinline)) void outermost(int faults)
{
	innermost(faults ? 0 : &sink);
	sink++;
}

int main(int argc, char **argv)
{
	(void)argv;
	outermost(argc > 1);
	return 0;
}
