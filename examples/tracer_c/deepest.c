/*
 * A tracer that remembers the deepest call of all threads.
 *
 *   gcc -O2 -shared -fPIC -I crates/tracer/include -o deepest.so examples/tracer_c/deepest.c
 *   LD_PRELOAD=./deepest.so PROGRAM &
 *   trapline tracer enable -p PID deepest
 *
 * It prints what it knows when the program ends. Outside of its callbacks it may do whatever a library may.
 */
#include <stdio.h>
#include "trapline_tracer.h"

static struct {
	unsigned depth;
	const void *function;
} deepest;

static void enter(const struct trapline_function *function, const void *caller, unsigned depth)
{
	(void)caller;
	unsigned before = __atomic_load_n(&deepest.depth, __ATOMIC_RELAXED);

	while (depth > before)
		if (__atomic_compare_exchange_n(&deepest.depth, &before, depth, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			deepest.function = function->address;
}

static const struct trapline_tracer tracer = { 1, TRAPLINE_FLAGS, "deepest", enter, 0 };

__attribute__((constructor)) static void begin(void)
{
	trapline_register(&tracer);
}

__attribute__((destructor)) static void end(void)
{
	if (deepest.function)
		fprintf(stderr, "deepest call: %u\n", deepest.depth);
}
