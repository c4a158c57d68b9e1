/* A tracer that counts entries and exits of one thread, and says at the end how many there were. */
#include <stdio.h>
#include "trapline_tracer.h"

static unsigned long entries, exits;

static void enter(const struct trapline_function *function, const void *caller, unsigned depth)
{
	(void)function, (void)caller, (void)depth;
	entries++;
}

static void leave(const struct trapline_function *function, unsigned depth)
{
	(void)function, (void)depth;
	exits++;
}

static const struct trapline_tracer tracer = { 1, TRAPLINE_FLAGS, "counting", enter, leave };

__attribute__((constructor)) static void begin(void)
{
	trapline_register(&tracer);
}

__attribute__((destructor)) static void end(void)
{
	printf("counted %lu %lu\n", entries, exits);
}
