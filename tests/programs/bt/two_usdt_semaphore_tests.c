/* Runs usdt_semaphore_test twice at once. */
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
	for (int i = 0; i < 2; i++)
		if (!fork()) {
			execl("./testprogs/usdt_semaphore_test", "usdt_semaphore_test", (char *)0);
			_exit(1);
		}
	while (wait(0) > 0)
		;
	return 0;
}
