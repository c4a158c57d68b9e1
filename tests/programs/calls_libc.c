/* Calls functions of the C library that have other names too, each once. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int compare(const void *a, const void *b) { return *(const char *)a - *(const char *)b; }

int main(void)
{
    char bytes[] = "cab";
    int fd = open("/dev/null", O_RDWR);
    if (write(fd, "x", 1) != 1 || read(fd, bytes, 0) != 0)
        return 1;
    close(fd);
    qsort(bytes, 3, 1, compare);
    free(realloc(NULL, 9));
    nanosleep(&(struct timespec){0, 1}, NULL);
    /* By _exit it is not written. */
    printf("%s %d\n", bytes, getpid() > 0);
    _exit(strcmp(bytes, "abc"));
}
