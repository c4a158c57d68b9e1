/* Code that was made at run time, with a call in it, and its list in /tmp/perf-PID.map. "writable": anybody may write to the
   list. "keep": it stays when the process ends. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	/* push %rbp; mov %rsp,%rbp; mov $110,%eax; syscall; pop %rbp; ret */
	static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xb8, 110, 0, 0, 0, 0x0f, 0x05, 0x5d, 0xc3};
	unsigned char *memory =
		mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char path[64];
	FILE *list;

	if (memory == MAP_FAILED)
		return 1;
	memcpy(memory + 0x40, code, sizeof code);
	snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
	list = fopen(path, "wx");
	if (!list)
		return 1;
	fprintf(list, "%lx %x jitted function\n", (unsigned long)memory + 0x40, (int)sizeof code);
	fclose(list);
	chmod(path, argc > 1 && !strcmp(argv[1], "writable") ? 0666 : 0644);
	if (getenv("TRAPLINE_TEST_LIMIT"))
		usleep(5000000);
	((long (*)(void))(memory + 0x40))();
	/* The list is read while the process runs. */
	usleep(getenv("TRAPLINE_TEST_LIMIT") ? 5000000 : 300000);
	if (argc < 2 || strcmp(argv[1], "keep"))
		unlink(path);
	return 0;
}
