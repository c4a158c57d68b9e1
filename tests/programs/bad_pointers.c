/* bad_pointers.c - arguments that point nowhere; a tracer must show the pointer and go on.
 * Certain calls, each = -1 EFAULT: openat with path NULL and with path 0x1; stat, read, write, execve with a bad argv,
 * execve with an argv whose second string is bad, readv with a bad array and with a bad buffer, recvmsg, sendmsg,
 * connect, rt_sigaction, nanosleep, poll, getrandom; and one path that runs into an unmapped page. Exits with the number
 * of those that did not fail with EFAULT. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static int wrong;

static void faults(const char *what, long result)
{
    if (result == -1 && errno == EFAULT)
        return;
    fprintf(stderr, "%s: %ld, errno %d\n", what, result, errno);
    wrong++;
}

/* A path without its end: the page after it is not mapped. */
static char *torn_path(void)
{
    long page = sysconf(_SC_PAGESIZE);
    char *two = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(two + page, page);
    memcpy(two + page - 4, "/tmp", 4);
    return two + page - 4;
}

static void paths_and_buffers(void *bad)
{
    int zero = open("/dev/zero", O_RDONLY), pipes[2];
    faults("pipe", pipe(pipes) == 0 ? (errno = EFAULT, -1) : 0);
    faults("openat NULL", syscall(SYS_openat, AT_FDCWD, NULL, O_RDONLY));
    faults("openat 1", syscall(SYS_openat, AT_FDCWD, bad, O_RDONLY));
    faults("openat torn", syscall(SYS_openat, AT_FDCWD, torn_path(), O_RDONLY));
    faults("stat", syscall(SYS_newfstatat, AT_FDCWD, "/", bad, 0));
    faults("read", syscall(SYS_read, zero, bad, 10));
    faults("write", syscall(SYS_write, pipes[1], bad, 10));
    faults("getrandom", syscall(SYS_getrandom, bad, 8, 0));
}

static void arrays(void *bad)
{
    char *half_bad[] = { "true", bad, NULL };
    struct iovec bad_buffer = { bad, 10 };
    int zero = open("/dev/zero", O_RDONLY);
    faults("execve argv", syscall(SYS_execve, "/bin/true", bad, NULL));
    faults("execve argv[1]", syscall(SYS_execve, "/bin/true", half_bad, NULL));
    faults("readv array", syscall(SYS_readv, zero, bad, 2));
    faults("readv buffer", syscall(SYS_readv, zero, &bad_buffer, 1));
    faults("poll", syscall(SYS_ppoll, bad, 1, NULL, NULL, 8));
}

static void structs(void *bad)
{
    int sockets[2];
    faults("socketpair", socketpair(AF_UNIX, SOCK_DGRAM, 0, sockets) == 0 ? (errno = EFAULT, -1) : 0);
    faults("recvmsg", syscall(SYS_recvmsg, sockets[0], bad, MSG_DONTWAIT));
    faults("sendmsg", syscall(SYS_sendmsg, sockets[0], bad, MSG_DONTWAIT));
    faults("connect", syscall(SYS_connect, sockets[0], bad, 16));
    faults("rt_sigaction", syscall(SYS_rt_sigaction, 10, bad, NULL, 8));
    faults("nanosleep", syscall(SYS_nanosleep, bad, NULL));
}

int main(void)
{
    paths_and_buffers((void *)1);
    arrays((void *)1);
    structs((void *)1);
    return wrong;
}
