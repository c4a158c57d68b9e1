/* standard.c - appends to a file which of stdin, stdout and stderr are closed (1, 2, 4, added), and what the next descriptors are.
 * Usage: standard FILE. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((noinline)) int is_closed(int fd) { return fcntl(fd, F_GETFD) < 0; }

int main(int argc, char **argv)
{
    (void)argc;
    int closed = 0;
    for (int fd = 0; fd < 3; fd++)
        closed |= is_closed(fd) << fd;
    char *line = malloc(64);
    int first = open("/dev/null", O_RDONLY), second = open("/dev/null", O_RDONLY);
    snprintf(line, 64, "%d %d %d\n", closed, first, second);
    int out = open(argv[1], O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (write(out, line, strlen(line)) < 0)
        return 1;
    free(line);
    return 0;
}
