/* Calls more functions of one pattern than a processor has debug registers, each with an address of its own. */
#include <stdlib.h>

#define FUNCTION(n) \
	__attribute__((noinline)) void increment_##n(int *at) \
	{ \
		(*at)++; \
	}
#define EACH(do_) \
	do_(0) do_(1) do_(2) do_(3) do_(4) do_(5) do_(6)

EACH(FUNCTION)
#define CALL(n) increment_##n(calloc(1, sizeof(int)));

int main(void)
{
	EACH(CALL)
	return 0;
}
