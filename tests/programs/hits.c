/* Places to be counted at.
 *
 * hits deep N          down() calls itself N deep
 * hits flood HOT RARE  hot() HOT times in one thread, rare() RARE times in another, a millisecond apart
 * hits calls N         N times getppid(2)
 * hits groups N        N times getpgid(2)
 * hits faults N        touches N fresh pages, and says where they begin
 * hits burn MS         runs for so many milliseconds of its own time
 * hits cells N         says where a number is, waits for a line on stdin, then writes it N times and reads it once
 * hits given N         calls given() for each of N numbers, and then adds 10 to each
 * hits wait            waits for a line on stdin, then calls rare() three times
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

__attribute__((noinline)) long down(long n)
{
	__asm__ volatile("");
	return n <= 1 ? 1 : 1 + down(n - 1);
}

__attribute__((noinline)) long hot(long i)
{
	__asm__ volatile("" : "+r"(i));
	return i;
}

__attribute__((noinline)) void given(long unused, volatile long *number)
{
	*number += 1;
}

__attribute__((noinline)) long rare(long i, const char *what)
{
	__asm__ volatile("" : "+r"(i) : "r"(what));
	return i;
}

static void *flood(void *arg)
{
	for (long i = 0; i < (long)arg; i++)
		hot(i);
	return NULL;
}

static long cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	long n = argc > 2 ? atol(argv[2]) : 0;

	if (!strcmp(mode, "deep")) {
		printf("%ld\n", down(n));
	} else if (!strcmp(mode, "flood")) {
		pthread_t thread;

		pthread_create(&thread, NULL, flood, (void *)n);
		for (long i = 0; i < atol(argv[3]); i++) {
			rare(i, "rare");
			usleep(1000);
		}
		pthread_join(thread, NULL);
	} else if (!strcmp(mode, "calls")) {
		for (long i = 0; i < n; i++)
			syscall(SYS_getppid);
	} else if (!strcmp(mode, "groups")) {
		for (long i = 0; i < n; i++)
			syscall(SYS_getpgid, 0);
	} else if (!strcmp(mode, "faults")) {
		long size = n * sysconf(_SC_PAGESIZE);
		char *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		madvise(pages, size, MADV_NOHUGEPAGE);
		for (long i = 0; i < n; i++)
			((volatile char *)pages)[i * (size / n)] = 1;
		printf("%lu\n", (unsigned long)pages);
	} else if (!strcmp(mode, "burn")) {
		while (cpu_ms() < n)
			;
	} else if (!strcmp(mode, "cells")) {
		static volatile int cell;

		printf("%#lx %#lx\n", (unsigned long)&cell, (unsigned long)rare);
		fflush(stdout);
		getchar();
		for (long i = 0; i < n; i++)
			cell = i;
		rare(cell, "read");
	} else if (!strcmp(mode, "given")) {
		static volatile long numbers[16];

		for (long i = 0; i < n; i++)
			for (long twice = 0; twice < 2; twice++)
				given(0, &numbers[i]);
		for (long i = 0; i < n; i++)
			numbers[i] += 10;
	} else if (!strcmp(mode, "wait")) {
		puts("ready");
		fflush(stdout);
		getchar();
		for (long i = 0; i < 3; i++)
			rare(i, "rare");
	}
	return 0;
}
