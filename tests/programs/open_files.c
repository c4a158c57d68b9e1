// Opens descriptors in several ways, and leaves some of them open: twelve files in leak(), three ends of pipes, a socket.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) static int leak(const char *name)
{
    int fd = open(name, O_RDONLY);
    return fd + 1;
}
__attribute__((noinline)) static int fine(void)
{
    int fd = open("/dev/null", O_RDONLY);
    dup2(fd, 50);
    close(fd);
    return close(50);
}
__attribute__((noinline)) static int ends(void)
{
    int p[2];
    pipe2(p, O_CLOEXEC);
    return close(p[1]);
}
int main(void)
{
    for (int i = 0; i < 12; i++) {
        leak(i % 2 ? "/dev/zero" : "/dev/null");
        fine();
    }
    for (int i = 0; i < 3; i++)
        ends();
    fcntl(1, F_DUPFD, 100);
    close_range(100, ~0u, 0);
    socket(AF_UNIX, SOCK_STREAM, 0);
    // A child has all of these, and opens none.
    if (!fork())
        _exit(0);
    wait(0);
    return 0;
}
