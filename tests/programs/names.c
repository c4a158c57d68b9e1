/* names.c - file names that are hard to show.
 * Usage: names [DIRECTORY], default the current one; the files are created in it and removed again.
 * Certain calls, for each of the names (not UTF-8, newline, ESC, quote and backslash, UTF-8, DEL and octal-looking,
 * 200 letters): openat(O_CREAT) = a descriptor, write of the name to it, stat, unlink; at last an open of a name that
 * does not exist = -1 ENOENT. Prints the number of names. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int use(const char *directory, const char *name)
{
    char path[4096];
    struct stat status;
    snprintf(path, sizeof path, "%s/%s", directory, name);
    int fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0)
        return 0;
    ssize_t n = write(fd, name, strlen(name));
    close(fd);
    return n > 0 && stat(path, &status) == 0 && unlink(path) == 0;
}

int main(int argc, char **argv)
{
    char letters[201];
    memset(letters, 'l', 200);
    letters[200] = 0;
    const char *names[] = { "bad\xff\xfeutf8", "new\nline", "esc\x1b[31mred", "quote\"back\\slash", "gr\xc3\xbc\xc3\x9f",
                            "del\x7f" "7 tab\t1\x01" "23", letters };
    const char *directory = argc > 1 ? argv[1] : ".";
    int count = (int)(sizeof names / sizeof *names), used = 0;
    for (int i = 0; i < count; i++)
        used += use(directory, names[i]);
    if (open("\x1b[2J/does\nnot\"exist", O_RDONLY) >= 0)
        return 1;
    printf("%d\n", used);
    return used == count ? 0 : 1;
}
