/* THREADS threads that make CALLS calls of getppid each, all at once. Prints how many calls were made. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static long calls;
static pthread_barrier_t all;

static void *caller(void *arg) {
	(void)arg;
	pthread_barrier_wait(&all);
	for (long i = 0; i < calls; i++)
		syscall(SYS_getppid);
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
	return 0;
}
