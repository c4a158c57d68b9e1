/* Ways to here(), each with a stack that is known:
   walks plain [N FILE]  functions that keep no frame pointer; lasts until there is such a file, at most 20 s
   walks deep N          a function within itself, N times
   walks large           a frame of 540 KB
   walks signal          the handler of a fault, on a stack of its own
   walks callback        a function of libc that calls back
   walks jit             code made at run time, which keeps frame pointers; named in /tmp/perf-PID.map
   walks dlopen FILE     a library that was loaded a moment ago (tests/programs/walks_library.c), and the same call once more, later
   walks clock MS        no here(): asks for the time, for so long
   walks stubs N         no here(): calls a function of walks_library.c by its stub, N times */
#define _GNU_SOURCE
#include "here.h"
#include <alloca.h>
#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static volatile long sink;
static sigjmp_buf landing;

__attribute__((noinline)) static void inner(long n)
{
	here();
	sink += n;
	STAY;
}

__attribute__((noinline)) static void middle(long n)
{
	char room[200];
	__asm__ volatile("" :: "r"(room) : "memory");
	inner(n + 1);
	__asm__ volatile("" :: "r"(room) : "memory");
}

__attribute__((noinline)) static void outer(long n)
{
	middle(n * 3);
	sink += n;
	STAY;
}

__attribute__((noinline)) static long deep(long n)
{
	long kept = sink + n;
	if (n == 1)
		here();
	else
		sink += deep(n - 1);
	STAY;
	return kept;
}

__attribute__((noinline)) static void large(void)
{
	char room[540000];
	__asm__ volatile("" :: "r"(room) : "memory");
	inner(1);
	__asm__ volatile("" :: "r"(room) : "memory");
}

__attribute__((noinline)) static void handler(int number)
{
	inner(number);
	siglongjmp(landing, 1);
}

__attribute__((noinline)) static long faults(long *nowhere)
{
	long got = *nowhere;
	STAY;
	return got + 1;
}

__attribute__((noinline)) static void interrupted(void)
{
	sink += faults((long *)sink);
	STAY;
}

static void on_a_stack_of_its_own(void)
{
	static char room[64 << 10];
	stack_t other = {.ss_sp = room, .ss_size = sizeof room};
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
	sigaltstack(&other, 0);
	sigaction(SIGSEGV, &action, 0);
	if (!sigsetjmp(landing, 1))
		interrupted();
}

__attribute__((noinline)) static int called_back(const void *a, const void *b)
{
	if (!sink)
		inner(7);
	return *(const int *)a - *(const int *)b;
}

__attribute__((noinline)) static void sorts(void)
{
	int two[2] = {2, 1};
	qsort(two, 2, sizeof two[0], called_back);
	sink += two[0];
}

__attribute__((noinline)) static void jit(void)
{
	/* push %rbp; mov %rsp,%rbp; sub $32,%rsp; call *%rdi; leave; ret */
	static const unsigned char first[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x20, 0xff, 0xd7, 0xc9, 0xc3};
	/* push %rbp; mov %rsp,%rbp; sub $16,%rsp; call -0x50 (first); leave; ret */
	static const unsigned char second[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x10, 0xe8, 0xb3, 0xff, 0xff, 0xff, 0xc9, 0xc3};
	unsigned char *code =
		mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char path[64];

	if (code == MAP_FAILED)
		exit(1);
	memcpy(code + 0x40, first, sizeof first);
	memcpy(code + 0x80, second, sizeof second);
	snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
	FILE *list = fopen(path, "wx");
	if (!list)
		exit(1);
	fprintf(list, "%lx %x first jitted\n%lx %x second jitted\n", (long)code + 0x40, (int)sizeof first,
		(long)code + 0x80, (int)sizeof second);
	fclose(list);
	/* What was mapped is reported first. */
	usleep(50000);
	((void (*)(void (*)(void)))(code + 0x80))(here);
	/* The list is read while the process runs. */
	usleep(400000);
	unlink(path);
	STAY;
}

__attribute__((noinline)) static void loads(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);
	void (*enters)(void) = library ? (void (*)(void))dlsym(library, "library_enters") : 0;
	if (!enters)
		exit(1);
	for (volatile int i = 0; i < 2; i++) {
		enters();
		usleep(100000);
	}
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

__attribute__((noinline)) static void asks(double until)
{
	while (now() < until)
		sink++;
}

static void lasts(const char *file)
{
	for (int i = 0; file && i < 2000 && access(file, F_OK); i++)
		usleep(10000);
}

#ifdef LIBRARY
extern long library_adds(long);

__attribute__((noinline)) static void stubs(long n)
{
	while (n--)
		sink += library_adds(n);
	STAY;
}
#endif

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "plain";
	long n = argc > 2 ? atol(argv[2]) : 1;

	settle();
	if (!strcmp(way, "plain"))
		outer(n), lasts(argv[2] ? argv[3] : 0);
	else if (!strcmp(way, "deep"))
		sink += deep(n);
	else if (!strcmp(way, "large"))
		large();
	else if (!strcmp(way, "signal"))
		on_a_stack_of_its_own();
	else if (!strcmp(way, "callback"))
		sorts();
	else if (!strcmp(way, "jit"))
		jit();
	else if (!strcmp(way, "dlopen") && argc > 2)
		loads(argv[2]);
	else if (!strcmp(way, "clock"))
		asks(now() + n);
#ifdef LIBRARY
	else if (!strcmp(way, "stubs"))
		stubs(n);
#endif
	else
		return 2;
	return 0;
}
