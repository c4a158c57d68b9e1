/* here(): where stacks are compared. It makes one getppid(2), and is called once. */
#include <sys/syscall.h>

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
