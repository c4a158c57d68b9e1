/* Passes three static probes of two providers, again and again for some seconds; with an argument, it does nothing. */
#include "../note.h"
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	if (argc > 1)
		return 0;
	for (int i = 0; i < 60; i++) {
		NOTE2("tracetest", "testprobe", "0", time(0), "Hello world");
		NOTE2("tracetest", "testprobe2", "0", time(0), "Hello world2");
		NOTE2("tracetest2", "testprobe2", "0", time(0), "Hello world3");
		usleep(50000);
	}
	return 0;
}
