/* huge_iov.c - large and impossible counts; a tracer must copy only what it shows.
 * Certain calls: writev of 1024 iovecs of 3 bytes to /dev/null = 3072; write of 64 MB to /dev/null = 67108864; pwritev
 * of 1024 iovecs; writev with a count of -1, of 1025 and of INT_MAX = -1 EINVAL; write with a length of -1 from a valid
 * buffer. Exits with 0 when these are the results. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { VECTORS = 1024, HUGE = 64 << 20 };

int main(void)
{
    static struct iovec vectors[VECTORS + 1];
    int null = open("/dev/null", O_WRONLY), wrong = 0;
    char *huge = malloc(HUGE);
    memset(huge, 'h', HUGE);
    for (int i = 0; i <= VECTORS; i++)
        vectors[i] = (struct iovec){ "abc", 3 };
    wrong += syscall(SYS_writev, null, vectors, VECTORS) != 3 * VECTORS;
    wrong += syscall(SYS_write, null, huge, HUGE) != HUGE;
    syscall(SYS_pwritev, null, vectors, VECTORS, 0L, 0L);
    wrong += syscall(SYS_writev, null, vectors, -1) != -1 || errno != EINVAL;
    wrong += syscall(SYS_writev, null, vectors, VECTORS + 1) != -1 || errno != EINVAL;
    wrong += syscall(SYS_writev, null, vectors, INT_MAX) != -1 || errno != EINVAL;
    syscall(SYS_write, null, huge, -1L);
    return wrong;
}
