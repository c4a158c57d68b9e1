/* THREADS threads that make CALLS calls of getppid each, all at once. Prints how many calls were made, and with a third argument the
 * processor time that the threads have needed for them, as cpu_ns N. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long calls;
static _Atomic long cpu_ns;
static pthread_barrier_t all;

static long now(void) {
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

static void *caller(void *arg) {
	(void)arg;
	pthread_barrier_wait(&all);
	long begun = now();
	for (long i = 0; i < calls; i++)
		syscall(SYS_getppid);
	cpu_ns += now() - begun;
	return 0;
}

int main(int argc, char **argv) {
	long threads = argc > 1 ? atol(argv[1]) : 64;
	calls = argc > 2 ? atol(argv[2]) : 125000;
	pthread_t *t = calloc(threads, sizeof *t);
	pthread_barrier_init(&all, 0, threads);
	for (long i = 0; i < threads; i++)
		if (pthread_create(&t[i], 0, caller, 0))
			return 1;
	for (long i = 0; i < threads; i++)
		pthread_join(t[i], 0);
	printf("%ld\n", threads * calls);
	if (argc > 3)
		printf("cpu_ns %ld\n", (long)cpu_ns);
	return 0;
}
