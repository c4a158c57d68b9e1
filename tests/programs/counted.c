/* counted.c - makes calls when it is told to.
 * Usage: counted [N], default 1000. Prints its pid. For every byte on stdin: N getppid, then a line with their number on
 * stdout. Ends with stdin.
 * Certain calls: per byte one read of 1 byte, N getppid, one write. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    long n = argc > 1 ? atol(argv[1]) : 1000;
    char byte;
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("%d\n", getpid());
    while (read(0, &byte, 1) == 1) {
        for (long i = 0; i < n; i++)
            syscall(SYS_getppid);
        printf("%ld\n", n);
    }
    return 0;
}
