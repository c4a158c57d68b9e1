// attached_bad_tracer.c - tracers that do what tracers may not do: BAD says what. From its thousandth call on, and not in each of them.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "trapline_tracer.h"

static unsigned long calls;

static void misbehaves(void)
{
	unsigned long n = __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);

	if (n < 1000)
		return;
#if BAD == 1
	/* malloc, also within the program's own. */
	char *p = malloc(100 + n % 5000);
	if (p)
		memset(p, 1, 100);
	free(p);
#elif BAD == 2
	struct timespec t = { 0, 200000 };
	if (n % 500 == 0)
		nanosleep(&t, NULL);
#elif BAD == 3
	if (n % 1000 == 0)
		fprintf(stderr, "tracer\n");
#elif BAD == 4
	/* It leaves its program no errno and no stack to speak of. */
	volatile char room[16384];
	memset((void *)room, 1, sizeof room);
	errno = 4711;
#elif BAD == 5
	if (n == 1000)
		*(volatile int *)8 = 1;
#elif BAD == 6
	raise(SIGALRM);
#endif
}

static void enter(const struct trapline_function *function, const void *caller, unsigned depth)
{
	(void)function, (void)caller, (void)depth;
	misbehaves();
}

static void leave(const struct trapline_function *function, unsigned depth)
{
	(void)function, (void)depth;
	misbehaves();
}

static const struct trapline_tracer tracer = { 1, TRAPLINE_ALL_REGISTERS, "bad", enter, leave };

__attribute__((constructor)) static void begin(void)
{
	trapline_register(&tracer);
}
