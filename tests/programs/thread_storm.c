/* Starts threads as fast as it can, two at a time, until its standard input ends or 10,000,000 were made: something to attach to
 * while it makes what is being attached to. Each thread calls getppid 20 times. */
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

static void *work(void *arg)
{
	for (int i = 0; i < 20; i++)
		getppid();
	return arg;
}

int main(void)
{
	for (int i = 0; i < 5000000; i++) {
		struct pollfd in = { .fd = 0, .events = POLLIN };
		pthread_t t[2];

		if (poll(&in, 1, 0) > 0)
			return 0;
		for (int k = 0; k < 2; k++)
			if (pthread_create(&t[k], NULL, work, NULL) != 0)
				return 1;
		for (int k = 0; k < 2; k++)
			pthread_join(t[k], NULL);
	}
	return 2;
}
