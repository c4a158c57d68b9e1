/* ends.c - a thread that is cancelled in waits(), which holds() has called; holds() has something to tidy up, which unwinding does
 * where this is compiled with -fexceptions. Prints what was tidied up, and "joined". */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static int begun[2], tidied;

static void tidy(int *what)
{
	tidied += *what;
}

__attribute__((noinline)) int waits(int fd)
{
	write(begun[1], "x", 1);
	for (;;)
		pause();
	return fd;
}

__attribute__((noinline)) int holds(void)
{
	int what __attribute__((cleanup(tidy))) = 5;

	return waits(0) + what;
}

static void *run(void *arg)
{
	return (void *)(long)holds();
}

int main(void)
{
	pthread_t thread;
	char c;

	if (pipe(begun) || pthread_create(&thread, NULL, run, NULL))
		return 1;
	read(begun[0], &c, 1);
	pthread_cancel(thread);
	pthread_join(thread, NULL);
	printf("%d joined\n", tidied);
	return 0;
}
