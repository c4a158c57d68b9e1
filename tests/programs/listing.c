/* listing.c - makes 3000 files with long names in a directory, lists it with buffers of several sizes, and asks for its capabilities.
 * Usage: listing DIR. Prints how many entries each getdents64 has returned; then capget with a version that does not exist, and with
 * the last one. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    char name[64];
    if (argc < 2 || chdir(argv[1]))
        return 1;
    for (int i = 0; i < 3000; i++) {
        snprintf(name, sizeof name, "a-file-with-a-name-that-takes-some-room-%d", i);
        close(open(name, O_CREAT | O_WRONLY, 0644));
    }
    long sizes[] = {1000, 32768, 1 << 20};
    char *buffer = malloc(1 << 20);
    int dir = open(".", O_RDONLY | O_DIRECTORY);
    for (int i = 0; i < 3; i++) {
        lseek(dir, 0, SEEK_SET);
        long got = syscall(SYS_getdents64, dir, buffer, sizes[i]), entries = 0;
        for (long at = 0; at < got; at += *(unsigned short *)(buffer + at + 16))
            entries++;
        printf("%ld\n", entries);
    }
    struct __user_cap_header_struct header = {0x12345678, 0};
    struct __user_cap_data_struct data[2];
    syscall(SYS_capget, &header, data);
    header.version = _LINUX_CAPABILITY_VERSION_3;
    return syscall(SYS_capget, &header, data) != 0;
}
