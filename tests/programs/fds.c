/* fds.c - everything that makes, copies, passes and closes descriptors, then exec, where some of them close.
 * Certain calls: open("/dev/null") three times, dup, dup2, dup3(O_CLOEXEC), fcntl F_DUPFD, F_DUPFD_CLOEXEC and F_SETFD,
 * pipe2, socketpair, sendmsg and recvmsg with SCM_RIGHTS (a new descriptor arrives), close_range, close; then execve of
 * itself, and after it fcntl(F_GETFD) of the descriptors 50 (kept) and 51, 52, 53 (closed by exec or before it).
 * Exits with 0 when just 50 is open after the exec. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

extern char **environ;

static struct msghdr message(struct iovec *iov, void *control, size_t length)
{
    return (struct msghdr){ .msg_iov = iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = length };
}

/* Sends fd through a pair of sockets to ourselves; the result is the descriptor that arrived. */
static int pass(int fd)
{
    int pair[2], received = -1;
    char byte = 'p', control[CMSG_SPACE(sizeof(int))] = { 0 };
    struct iovec iov = { &byte, 1 };
    struct msghdr msg = message(&iov, control, sizeof control);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return -1;
    struct cmsghdr *header = CMSG_FIRSTHDR(&msg);
    *header = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof fd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS };
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
    if (sendmsg(pair[0], &msg, 0) != 1 || recvmsg(pair[1], &msg, MSG_CMSG_CLOEXEC) != 1)
        return -1;
    memcpy(&received, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof received);
    close(pair[0]);
    close(pair[1]);
    return received;
}

static int after_exec(void)
{
    int open_ones = 0;
    for (int fd = 50; fd <= 53; fd++)
        open_ones |= (fcntl(fd, F_GETFD) >= 0) << (fd - 50);
    return open_ones == 1 ? 0 : 1;
}

int main(int argc, char **argv)
{
    char *again[] = { argv[0], "after-exec", NULL };
    int ends[2];
    if (argc > 1 && strcmp(argv[1], "after-exec") == 0)
        return after_exec();
    int kept = open("/dev/null", O_RDWR), closed = open("/dev/null", O_RDWR | O_CLOEXEC), third = open("/dev/null", O_RDONLY);
    int copy = dup(kept);
    dup2(copy, 50);
    dup3(third, 51, O_CLOEXEC);
    fcntl(closed, F_DUPFD, 52);
    fcntl(closed, F_DUPFD_CLOEXEC, 53);
    fcntl(52, F_SETFD, FD_CLOEXEC);
    int arrived = pass(kept);
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0 || arrived < 0)
        return 1;
    close(ends[0]);
    syscall(SYS_close_range, arrived, 40, 0);
    execve("/proc/self/exe", again, environ);
    return 127;
}
