// Ways to here() while C++ handles an exception:
// walks catch        a function that a handler calls
// walks destructor   a destructor, on the exception's way
// walks terminate    what runs where nobody catches it: the functions that raise are still there
#include "here.h"
#include <cstdlib>
#include <cstring>
#include <exception>
#include <unistd.h>

static volatile long sink;

__attribute__((noinline)) static void tells(long n)
{
	here();
	sink += n;
	STAY;
}

struct Guard {
	__attribute__((noinline)) ~Guard()
	{
		tells(2);
		STAY;
	}
};

__attribute__((noinline)) static void throws(long n)
{
	sink++;
	if (n)
		throw n;
	STAY;
}

__attribute__((noinline)) static void guarded(long n)
{
	Guard guard;
	throws(n);
}

__attribute__((noinline)) static void catches(long n)
{
	try {
		throws(n);
	} catch (long got) {
		tells(got);
	}
	STAY;
}

__attribute__((noinline)) static void lands(long n)
{
	try {
		guarded(n);
	} catch (long) {
		sink++;
	}
	STAY;
}

__attribute__((noinline)) static void gives_up()
{
	tells(4);
	_exit(0);
}

int main(int argc, char **argv)
{
	settle();
	const char *way = argc > 1 ? argv[1] : "";
	if (!strcmp(way, "catch"))
		catches(argc);
	else if (!strcmp(way, "destructor"))
		lands(argc);
	else if (!strcmp(way, "terminate")) {
		std::set_terminate(gives_up);
		throws(argc);
	}
	return 0;
}
