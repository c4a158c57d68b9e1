/* nonresident.c - paths in pages that are not in memory when the call begins.
 * Usage: nonresident [DIRECTORY], default the current one; a file is created in it and removed again.
 * Certain calls: openat(AT_FDCWD, "/fresh/mapping", O_RDONLY) from a page of a file mapping that was never touched,
 * openat(AT_FDCWD, "/dropped/page", O_RDONLY) from one that madvise(MADV_DONTNEED) has dropped, and
 * openat(AT_FDCWD, "/across/two/pages", O_RDONLY) whose first page is resident and whose second is not, each = -1 ENOENT.
 * Exits with 0 when these are the results. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static char *map(int file, long length)
{
    return mmap(NULL, length, PROT_READ, MAP_PRIVATE, file, 0);
}

static int missing(const char *path)
{
    return syscall(SYS_openat, AT_FDCWD, path, O_RDONLY) == -1 && errno == ENOENT;
}

int main(int argc, char **argv)
{
    long page = sysconf(_SC_PAGESIZE);
    char path[4096];
    snprintf(path, sizeof path, "%s/nonresident.tmp", argc > 1 ? argv[1] : ".");
    int file = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    if (file < 0 || pwrite(file, "/fresh/mapping", 15, 0) != 15 || pwrite(file, "/dropped/page", 14, page) != 14
        || pwrite(file, "/across/two/pages", 18, 3 * page - 8) != 18)
        return 2;
    fsync(file);
    unlink(path);
    char *fresh = map(file, page), *dropped = map(file, 2 * page) + page, *torn = map(file, 4 * page) + 3 * page - 8;
    /* No pages around a fault: only the one that is touched becomes resident. */
    madvise(dropped - page, 2 * page, MADV_RANDOM);
    madvise(torn + 8 - 3 * page, 4 * page, MADV_RANDOM);
    volatile char touched = dropped[0];
    touched = torn[0];
    (void)touched;
    if (madvise(dropped, page, MADV_DONTNEED) != 0 || madvise(torn + 8, page, MADV_DONTNEED) != 0)
        return 3;
    int right = missing(fresh);
    right += missing(dropped);
    right += missing(torn);
    return right == 3 ? 0 : 1;
}
