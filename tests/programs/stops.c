/*
 * Reads the clock all the time, in one of so many threads (argument), and calls 500 functions now and then. On SIGTERM it prints when it
 * could not, from 50 us on: from, to (ns of the monotonic clock), and how much of that it has waited for a processor.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define ONE(n) __attribute__((noinline)) static long function_##n(long x) { return x * 3 + n; }
#define TEN(n) ONE(n##0) ONE(n##1) ONE(n##2) ONE(n##3) ONE(n##4) ONE(n##5) ONE(n##6) ONE(n##7) ONE(n##8) ONE(n##9)
#define HUNDRED(n) TEN(n##0) TEN(n##1) TEN(n##2) TEN(n##3) TEN(n##4) TEN(n##5) TEN(n##6) TEN(n##7) TEN(n##8) TEN(n##9)
HUNDRED(1) HUNDRED(2) HUNDRED(3) HUNDRED(4) HUNDRED(5)
#define NAME(n) function_##n,
#define TEN_NAMES(n) NAME(n##0) NAME(n##1) NAME(n##2) NAME(n##3) NAME(n##4) NAME(n##5) NAME(n##6) NAME(n##7) NAME(n##8) NAME(n##9)
#define NAMES(n) TEN_NAMES(n##0) TEN_NAMES(n##1) TEN_NAMES(n##2) TEN_NAMES(n##3) TEN_NAMES(n##4) \
	TEN_NAMES(n##5) TEN_NAMES(n##6) TEN_NAMES(n##7) TEN_NAMES(n##8) TEN_NAMES(n##9)
static long (*const functions[])(long) = { NAMES(1) NAMES(2) NAMES(3) NAMES(4) NAMES(5) };

static volatile sig_atomic_t over;
static long gaps[100000][3];
static int schedstat;

static void end(int signal) { (void)signal; over = 1; }

static long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000 + t.tv_nsec;
}

/* The second number of schedstat: time on a run queue (Documentation/scheduler/sched-stats.rst), ns. */
static long waited(void)
{
	char text[100];
	ssize_t len = pread(schedstat, text, sizeof(text) - 1, 0);
	char *rest = text;

	text[len > 0 ? len : 0] = 0;
	strtol(text, &rest, 10);
	return strtol(rest, 0, 10);
}

static void *idle(void *none)
{
	for (;;)
		pause();
	return none;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	sigset_t term;
	long x = 0, n = 0, last, before;

	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	signal(SIGTERM, end);
	pthread_sigmask(SIG_BLOCK, &term, 0);
	for (int i = 1; i < (argc > 1 ? atoi(argv[1]) : 1); i++)
		pthread_create(&thread, 0, idle, 0);
	pthread_sigmask(SIG_UNBLOCK, &term, 0);
	schedstat = open("/proc/thread-self/schedstat", O_RDONLY);
	before = waited();
	last = now();
	for (long i = 0; !over; i++) {
		x = functions[i % 500](x);
		long t = now();

		if (t - last > 50000 && n < 100000) {
			long w = waited();

			gaps[n][0] = last, gaps[n][1] = t, gaps[n++][2] = w - before;
			before = w;
			t = now();
		}
		last = t;
	}
	for (long i = 0; i < n; i++)
		printf("%ld %ld %ld\n", gaps[i][0], gaps[i][1], gaps[i][2]);
	fflush(stdout);
	_exit(x == 1);
}
