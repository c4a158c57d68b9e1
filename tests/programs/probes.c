/* Something to set probes on: probes N waits for a line on stdin, calls worked() N times, passes the static probes lab:step (with
 * a semaphore) and lab:plain as often, and says how often it saw the semaphore raised. */
#include "note.h"
#include <stdio.h>
#include <stdlib.h>

__attribute__((used, section(".probes"))) volatile unsigned short lab_step_semaphore;

__attribute__((noinline)) long worked(int i, const char *what, long n)
{
	__asm__ volatile("" ::"r"(what) : "memory");
	return i + n;
}

/* A function that is chosen when the program is loaded. */
static long only_choice(void)
{
	return 0;
}

static void *choose(void)
{
	return only_choice;
}

long chosen(void) __attribute__((ifunc("choose")));

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 0, raised = 0;
	long sum = 0;

	puts("ready");
	fflush(stdout);
	getchar();
	for (int i = 0; i < n; i++) {
		sum += worked(i, "step", 1000);
		raised += lab_step_semaphore != 0;
		NOTE("lab", "step", "lab_step_semaphore", "-4@%0 8@%1 -4@$-7", "r"(i), "r"(sum));
		NOTE("lab", "plain", "0", "-4@%0", "r"(i));
	}
	sum += chosen();
	printf("%ld %d\n", sum, raised);
	return 0;
}
