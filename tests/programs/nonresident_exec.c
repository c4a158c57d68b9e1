/* nonresident_exec.c - an execve whose path lies in a page that is not in memory when the call begins.
 * Usage: nonresident_exec DIRECTORY PROGRAM; a file is created in DIRECTORY and removed again.
 * First a failing execve("/no/such/program", ["fails"]), then execve(PROGRAM, ["works", "well"], []), both from a page of a file
 * mapping that was never touched. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    static const char missing[] = "/no/such/program";
    long page = sysconf(_SC_PAGESIZE);
    char path[4096];
    if (argc != 3)
        return 2;
    snprintf(path, sizeof path, "%s/nonresident_exec.tmp", argv[1]);
    int file = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    if (file < 0 || pwrite(file, missing, sizeof missing, 0) < 0 || pwrite(file, argv[2], strlen(argv[2]) + 1, page) < 0)
        return 3;
    fsync(file);
    unlink(path);
    char *paths = mmap(NULL, 2 * page, PROT_READ, MAP_PRIVATE, file, 0);
    if (paths == MAP_FAILED || madvise(paths, 2 * page, MADV_RANDOM) != 0)
        return 4;
    char *none[] = { NULL };
    execve(paths, (char *[]){ "fails", NULL }, none);
    execve(paths + page, (char *[]){ "works", "well", NULL }, none);
    return 5;
}
