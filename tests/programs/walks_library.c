/* A library that comes to here() by functions of its own, and one that adds. */
#include "here.h"

static volatile long sink;

__attribute__((noinline)) static void library_inner(long n)
{
	here();
	sink += n;
	STAY;
}

void library_enters(void)
{
	library_inner(3);
	sink++;
	STAY;
}

long library_adds(long n)
{
	return n + sink;
}
