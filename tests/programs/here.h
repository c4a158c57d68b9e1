/* here(): where stacks are compared. It makes one getppid(2), and is called once. */
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C"
#endif
__attribute__((noinline)) void here(void)
{
	long result;
	__asm__ volatile("syscall" : "=a"(result) : "a"(SYS_getppid) : "rcx", "r11", "memory");
}

/* At the end of a function: what it has called before is a call, and not a jump. */
#define STAY __asm__ volatile("" ::: "memory")

/* The tables for a program's stacks are built when it is mapped: waits for that, longer where tests have more time. */
static inline void settle(void)
{
	usleep(getenv("TRAPLINE_TEST_LIMIT") ? 5000000 : 200000);
}
