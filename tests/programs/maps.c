/* Maps code in every usual way: maps DEPTH: starts itself DEPTH times by fork and exec, each opens libm at run time, and maps a
 * page of its own program and one of no file. With a second argument it waits for a line before it ends.
 * maps flood N: on one CPU, waits, maps N pages of code one after the other, waits, and maps one more. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void wait_for_a_line(void)
{
	puts("ready");
	fflush(stdout);
	getchar();
}

static int flood(int n)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(sched_getcpu(), &set);
	sched_setaffinity(0, sizeof(set), &set);
	wait_for_a_line();
	for (int i = 0; i <= n; i++) {
		if (i == n)
			wait_for_a_line();
		void *page = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		/* A page that stays is another address than the next one's. */
		if (page == MAP_FAILED || (i % 2 && munmap(page, 4096)))
			return 8;
	}
	return 0;
}

int main(int argc, char **argv)
{
	int depth = argc > 1 ? atoi(argv[1]) : 0, fd = open("/proc/self/exe", O_RDONLY), status = 0;
	char next[16];

	if (argc > 2 && !strcmp(argv[1], "flood"))
		return flood(atoi(argv[2]));
	if (!dlopen("libm.so.6", RTLD_NOW))
		return 2;
	if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		return 3;
	if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
		return 4;
	if (mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		return 5;
	close(fd);
	if (depth > 0) {
		pid_t child = fork();

		if (child == 0) {
			snprintf(next, sizeof(next), "%d", depth - 1);
			execl(argv[0], argv[0], next, argc > 2 ? argv[2] : NULL, NULL);
			_exit(6);
		}
		if (waitpid(child, &status, 0) < 0 || status)
			return 7;
	}
	if (argc > 2)
		wait_for_a_line();
	return 0;
}
