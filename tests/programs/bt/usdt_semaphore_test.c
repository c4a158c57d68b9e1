/* Passes a static probe, with what its semaphore says; with an argument, it does nothing. */
#include "../note.h"
#include <stdio.h>
#include <time.h>
#include <unistd.h>

__attribute__((used, section(".probes"))) volatile unsigned short tracetest_testprobe_semaphore;

int main(int argc, char **argv)
{
	char text[64];
	if (argc > 1)
		return 0;
	for (int i = 0; i < 60; i++) {
		snprintf(text, sizeof text, "tracetest_testprobe_semaphore: %d", tracetest_testprobe_semaphore);
		NOTE2("tracetest", "testprobe", "tracetest_testprobe_semaphore", time(0), text);
		usleep(50000);
	}
	return 0;
}
