/* Places that are reached a known number of times, and how long that took.
 *
 * site function N      three() N times, then a line "loop_ns TIME"
 * site call N          N times getppid(2), then the same
 * site static N        N times a static probe, then the same
 * site now COMMAND...  a line "now_ns TIME" (CLOCK_MONOTONIC), then becomes COMMAND
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "note.h"

__attribute__((noinline)) long three(long i, const char *what, int n)
{
	__asm__ volatile("" : "+r"(i) : "r"(what), "r"(n));
	return i;
}

static long long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	long n = argc > 2 ? atol(argv[2]) : 0;
	long long start;

	if (!strcmp(mode, "now") && argc > 2) {
		printf("now_ns %lld\n", now());
		fflush(stdout);
		execvp(argv[2], argv + 2);
		return 127;
	}
	start = now();
	if (!strcmp(mode, "function"))
		for (long i = 0; i < n; i++)
			three(i, "what", 3);
	else if (!strcmp(mode, "static"))
		for (long i = 0; i < n; i++)
			NOTE2("site", "turn", "0", i, "what");
	else if (!strcmp(mode, "call"))
		for (long i = 0; i < n; i++)
			syscall(SYS_getppid);
	else
		return 2;
	printf("loop_ns %lld\n", now() - start);
	return 0;
}
