// A function that makes three system calls, as often as it is told; with a second number, with so many microseconds between.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

long leaf(long n) {
    char room[8];
    int fd = open("/etc/passwd", O_RDONLY);
    n += read(fd, room, 4);
    close(fd);
    return n;
}

int main(int argc, char **argv) {
    long sum = 0;
    for (int n = argc > 1 ? atoi(argv[1]) : 1; n > 0; n--) {
        sum = leaf(sum);
        if (argc > 2) usleep(atoi(argv[2]));
    }
    printf("%ld\n", sum);
}
