/* Arguments of other sizes than a register's; with an argument, it does nothing. */
#include "../note.h"
#include <unistd.h>

int main(int argc, char **argv)
{
	if (argc > 1)
		return 0;
	for (int i = 0; i < 60; i++) {
		unsigned long wide = 0xffffffff00000001;
		NOTE("test", "probe1", "0", "8@%[n]", [n] "r"(wide));
		NOTE("test", "probe2", "0", "4@%k[n]", [n] "r"(wide));
		NOTE("test", "probe3", "0", "1@%b[n]", [n] "q"(wide));
		usleep(50000);
	}
	return 0;
}
