/* A static probe whose name has quotes; with an argument, it does nothing. */
#include "../note.h"
#include <unistd.h>

int main(int argc, char **argv)
{
	if (argc > 1)
		return 0;
	for (int i = 0; i < 60; i++) {
		NOTE2("test", "\\\"probe1\\\"", "0", 1, "a");
		usleep(50000);
	}
	return 0;
}
