/* Makes one call, without the C library's way to it: syscall openat | read | nanosleep NS | execve PATH ARG... */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const char *opened = "/tmp/bpftrace_runtime_test_syscall_gen_open_temp";

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	if (!strcmp(what, "nanosleep") && argc > 2) {
		long ns = (long)strtod(argv[2], 0);
		struct timespec t = {ns / 1000000000, ns % 1000000000};
		return syscall(SYS_nanosleep, &t, 0) != 0;
	}
	if (!strcmp(what, "openat")) {
		long fd = syscall(SYS_openat, AT_FDCWD, opened, O_CREAT, 0600);
		unlink(opened);
		return fd < 0;
	}
	if (!strcmp(what, "read")) {
		char byte;
		int fd = open("/dev/zero", O_RDONLY);
		return syscall(SYS_read, fd, &byte, 1) != 1;
	}
	if (!strcmp(what, "execve") && argc > 2) {
		char *none[] = {0};
		return syscall(SYS_execve, argv[2], argv + 2, none) != 0;
	}
	return 2;
}
