/* Two static probes, of which one has five places; with an argument, it does nothing. */
#include "../note.h"
#include <unistd.h>

int main(int argc, char **argv)
{
	if (argc > 1)
		return 0;
	for (int i = 0; i < 60; i++) {
		NOTE2("tracetest", "testprobe", "0", 1, "a");
		NOTE2("tracetest", "testprobe", "0", 2, "b");
		NOTE2("tracetest", "testprobe", "0", 3, "c");
		NOTE2("tracetest", "testprobe", "0", 4, "d");
		NOTE2("tracetest", "testprobe", "0", 5, "e");
		NOTE2("tracetest", "testprobe2", "0", 6, "f");
		usleep(50000);
	}
	return 0;
}
