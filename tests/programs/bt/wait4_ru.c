/* Waits for a child and wants to know what it has used. */
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void)
{
	struct rusage used;
	int status;
	pid_t child = fork();
	if (!child)
		_exit(0);
	return syscall(SYS_wait4, child, &status, 0, &used) != child;
}
