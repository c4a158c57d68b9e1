/* Stacks that are known: main, outer, 30 functions f29 ... f0, leaf. Among what lies outside of f29 are a frame with a stack that was
   realigned, one whose size is not known at compile time, and a library that calls back.
   deep block        leaf waits for a byte
   deep signal       leaf raises a signal, whose handler waits for a byte
   deep loop N       leaf is called N times
   deep spin MS      leaf is called again and again, and computes, for so long */
#include <alloca.h>
#include <signal.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static char mode;
static volatile long sink;

static void wait_for_byte(void)
{
	char c;
	if (write(1, "here\n", 5) == 5 && read(0, &c, 1) < 0)
		sink++;
}

__attribute__((noinline)) void handler(int number)
{
	sink += number;
	wait_for_byte();
	__asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) long leaf(long x)
{
	if (mode == 'b')
		wait_for_byte();
	else if (mode == 's' && !sink)
		raise(SIGUSR1);
	else if (mode == 't')
		for (int i = 0; i < 2000; i++)
			x += sink;
	__asm__ volatile("" : "+r"(x) :: "memory");
	return x;
}

#define F(n, next) \
	__attribute__((noinline)) long f##n(long x) \
	{ \
		char room[8 + 24 * n]; \
		long a = x ^ n, b = x * 3, c = x - n; \
		__asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c) : "r"(room) : "memory"); \
		long r = next(x + n); \
		__asm__ volatile("" : "+r"(r) : "r"(room) : "memory"); \
		return r + a + b + c; \
	}

F(0, leaf) F(1, f0) F(2, f1) F(3, f2) F(4, f3) F(5, f4) F(6, f5) F(7, f6) F(8, f7) F(9, f8)
F(10, f9) F(11, f10) F(12, f11) F(13, f12) F(14, f13) F(15, f14) F(16, f15) F(17, f16) F(18, f17) F(19, f18)
F(20, f19) F(21, f20) F(22, f21) F(23, f22) F(24, f23) F(25, f24) F(26, f25) F(27, f26) F(28, f27) F(29, f28)

__attribute__((noinline)) int called_back(const void *a, const void *b)
{
	long r = f29(*(const int *)a);
	__asm__ volatile("" : "+r"(r) :: "memory");
	return *(const int *)a - *(const int *)b;
}

__attribute__((noinline)) long aligned(long x)
{
	alignas(64) char room[128];
	int two[2] = {2, 1};
	__asm__ volatile("" :: "r"(room) : "memory");
	qsort(two, 2, sizeof two[0], called_back);
	__asm__ volatile("" :: "r"(room) : "memory");
	return x + two[0] + room[0];
}

__attribute__((noinline)) long outer(long x)
{
	char *room = alloca(x);
	memset(room, 1, x);
	long r = aligned(x + room[0]);
	__asm__ volatile("" : "+r"(r) : "r"(room) : "memory");
	return r;
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

int main(int argc, char **argv)
{
	mode = argc > 1 ? argv[1][0] : 'b';
	long n = argc > 2 ? atol(argv[2]) : 1;
	if (argc > 1 && !strcmp(argv[1], "spin"))
		mode = 't';
	signal(SIGUSR1, handler);
	if (mode == 't')
		for (double end = now() + n; now() < end;)
			sink += outer(100) & 1;
	else if (mode == 'l') {
		wait_for_byte();
		for (long i = 0; i < n; i++)
			sink += outer(100);
	} else
		sink += outer(100);
	return 0;
}
