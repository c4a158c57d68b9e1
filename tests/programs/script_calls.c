/* script_calls N THREADS: each thread asks for its parent's id N times. */
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static long n;

static void *calls(void *unused)
{
	for (long i = 0; i < n; i++)
		syscall(SYS_getppid);
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t all[16];
	int threads = argc > 2 ? atoi(argv[2]) : 1;

	n = atol(argv[1]);
	for (int i = 0; i < threads; i++)
		pthread_create(&all[i], 0, calls, 0);
	for (int i = 0; i < threads; i++)
		pthread_join(all[i], 0);
	return 0;
}
