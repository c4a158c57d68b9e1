/* own_counts.c - threads that count their own calls.
 * Usage: own_counts THREADS CALLS EVERY. Prints its pid and waits for a byte on stdin; then, on two processors at most, each thread makes
 * CALLS calls of sched_get_priority_max, which hardly any other program makes, and sleeps for 1 ms after EVERY of them (0: never). At the
 * end a line for each thread: its id and how many calls it has made. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static long calls, every;
static pthread_barrier_t all;

struct thread {
	pthread_t id;
	long tid, made;
};

static void *caller(void *arg)
{
	struct thread *self = arg;
	self->tid = syscall(SYS_gettid);
	pthread_barrier_wait(&all);
	while (self->made < calls) {
		if (syscall(SYS_sched_get_priority_max, SCHED_OTHER) == 0)
			self->made++;
		if (every && self->made % every == 0)
			usleep(1000);
	}
	return NULL;
}

/* Two of the processors that it may run on. */
static void pin(void)
{
	cpu_set_t may, two;
	CPU_ZERO(&two);
	if (sched_getaffinity(0, sizeof may, &may))
		return;
	for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&two) < 2; cpu++)
		if (CPU_ISSET(cpu, &may))
			CPU_SET(cpu, &two);
	sched_setaffinity(0, sizeof two, &two);
}

int main(int argc, char **argv)
{
	long threads = argc > 1 ? atol(argv[1]) : 8;
	char byte;
	calls = argc > 2 ? atol(argv[2]) : 1000;
	every = argc > 3 ? atol(argv[3]) : 0;
	struct thread *t = calloc(threads, sizeof *t);
	printf("%d\n", getpid());
	fflush(stdout);
	if (read(0, &byte, 1) != 1)
		return 1;
	pin();
	pthread_barrier_init(&all, NULL, threads);
	for (long i = 0; i < threads; i++)
		if (pthread_create(&t[i].id, NULL, caller, &t[i]))
			return 1;
	for (long i = 0; i < threads; i++)
		pthread_join(t[i].id, NULL);
	for (long i = 0; i < threads; i++)
		printf("%ld %ld\n", t[i].tid, t[i].made);
	return 0;
}
