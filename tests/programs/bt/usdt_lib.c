/* uses libusdt_tp.so */
/* Passes the static probes of a library; with an argument, it does nothing. */
#include <unistd.h>

void lib_probe_1(void);
void lib_probe_2(void);

int main(int argc, char **argv)
{
	if (argc > 1)
		return 0;
	for (int i = 0; i < 60; i++) {
		lib_probe_1();
		lib_probe_2();
		usleep(50000);
	}
	return 0;
}
