/* ia32.c - calls by int $0x80 from a 64-bit program: numbers and registers are those of i386.
 * Certain calls, as i386: getpid (20), write (4) of "ia32\n" to descriptor 1 = 5, close (6) of -1 = -EBADF. Exits with 0
 * when these are the results, with 77 where the kernel has no IA32 emulation or the machine is not x86-64. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef __x86_64__
static long call32(long number, long a, long b, long c)
{
    long result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(a), "c"(b), "d"(c)
                     : "memory", "r8", "r9", "r10", "r11");
    return (int)result;
}

static void no_emulation(int signo)
{
    (void)signo;
    _exit(77);
}

int main(void)
{
    /* The pointer must fit 32 bits. */
    char *low = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    if (low == MAP_FAILED)
        return 1;
    memcpy(low, "ia32\n", 5);
    signal(SIGSEGV, no_emulation);
    int wrong = call32(20, 0, 0, 0) != getpid();
    wrong += call32(4, 1, (long)low, 5) != 5;
    wrong += call32(6, -1, 0, 0) != -EBADF;
    return wrong;
}
#else
int main(void)
{
    return 77;
}
#endif
