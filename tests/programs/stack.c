/* A call below known functions, one of which is inlined; and the same from a library function. Frames have frame pointers, and no
   function jumps to another at its end. */
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile int sink;

static inline __attribute__((always_inline)) long inlined(void)
{
	long result;
	__asm__ volatile("syscall" : "=a"(result) : "a"(SYS_getppid) : "rcx", "r11", "memory");
	sink++;
	return result;
}

__attribute__((noinline)) long middle(int n)
{
	sink += __builtin_frame_address(0) != 0;
	long result = inlined();
	sink += n;
	return result;
}

__attribute__((noinline)) long outer(int n)
{
	long result = middle(n + 1);
	sink += n;
	return result;
}

int main(void)
{
	/* The tables for its stacks are built when it is mapped; some machines are slow. */
	usleep(getenv("TRAPLINE_TEST_LIMIT") ? 5000000 : 30000);
	long result = outer(1);
	sink += result != 0;
	return 0;
}
