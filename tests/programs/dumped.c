/* Code that is made at run time, twice at the same place under two names, with a dump of it in ./jit-PID.dump. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* push %rbp; mov %rsp,%rbp; mov $110,%eax; syscall; pop %rbp; ret */
static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xb8, 110, 0, 0, 0, 0x0f, 0x05, 0x5d, 0xc3};
static unsigned char *memory;
static int dump;

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void call(const char *name)
{
	struct {
		uint32_t id, size;
		uint64_t time;
		uint32_t pid, tid;
		uint64_t vma, address, bytes, index;
	} load = {.pid = getpid(), .tid = getpid(), .bytes = sizeof code};

	memcpy(memory + 0x40, code, sizeof code);
	load.size = sizeof load + strlen(name) + 1 + sizeof code;
	load.vma = load.address = (uintptr_t)memory + 0x40;
	load.time = now();
	write(dump, &load, sizeof load);
	write(dump, name, strlen(name) + 1);
	write(dump, code, sizeof code);
	((long (*)(void))(memory + 0x40))();
}

int main(void)
{
	struct {
		uint32_t magic, version, size, machine, pad, pid;
		uint64_t time, flags;
	} header = {0x4a695444, 1, sizeof header, 62, 0, getpid(), now(), 0};
	char path[64];

	memory = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	snprintf(path, sizeof path, "jit-%d.dump", getpid());
	dump = open(path, O_CREAT | O_EXCL | O_RDWR, 0644);
	if (memory == MAP_FAILED || dump < 0)
		return 1;
	write(dump, &header, sizeof header);
	mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, dump, 0);
	call("first name");
	call("second name");
	/* What is shown is looked up while the process runs. */
	usleep(300000);
	return 0;
}
