/* A function of a library (-DLIBRARY), which is chosen when it is first called: whoever chooses makes a call then, below the loader. */
#include <sys/syscall.h>

long chosen(void);

#ifdef LIBRARY
/* Whoever chooses touches these pages for the first time too. */
static char pages[64][4096];

static long nothing(void)
{
	return 0;
}

__attribute__((used)) static long (*chooses(void))(void)
{
	long result;
	for (int i = 0; i < 64; i++)
		((volatile char *)pages[i])[0] = 1;
	__asm__ volatile("syscall" : "=a"(result) : "a"(SYS_getppid) : "rcx", "r11", "memory");
	return nothing;
}

long chosen(void) __attribute__((ifunc("chooses")));
#else
int main(void)
{
	return (int)chosen();
}
#endif
