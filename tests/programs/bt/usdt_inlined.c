/* A static probe in a function that is inlined twice; with an argument, it does nothing. */
#include "../note.h"

static inline __attribute__((always_inline)) void passed(long n)
{
	NOTE("tracetest", "testprobe", "0", "-8@$1 -8@%[n]", [n] "r"(n));
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return 0;
	passed(999);
	passed(100);
	return 0;
}
