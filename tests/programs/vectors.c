/* Calls of several ops each: 1000 writev of five buffers to /dev/null, and 112 getppid. */
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

int main(void) {
	struct iovec v[5] = { { "a", 1 }, { "bc", 2 }, { "def", 3 }, { "ghij", 4 }, { "klmno", 5 } };
	int fd = open("/dev/null", O_WRONLY);
	for (int i = 0; i < 1000; i++) {
		if (writev(fd, v, 5) != 15)
			return 1;
		if (i % 9 == 0)
			getppid();
	}
	return 0;
}
