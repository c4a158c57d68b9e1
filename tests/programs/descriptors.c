/* descriptors.c - descriptors of many kinds, by ways on which their paths are not those of the calls.
 * Usage: descriptors DIRECTORY; files are made in it and removed again.
 * Certain: a file by a symbolic link and by a path with "..", one that has been removed, one in a directory that is renamed, one 300
 * directories below, a pipe, eventfd, epoll, pidfd, memfd, /dev/null, sockets before and after they are bound and connected,
 * descriptors passed by SCM_RIGHTS, a changed working directory, a file in a root of its own.
 * Exits with 0. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static void must(long result)
{
    if (result < 0)
        _exit(1);
}

static void files(void)
{
    int file, gone;
    mkdir("above", 0700);
    mkdir("above/below", 0700);
    must(file = open("above/below/real", O_CREAT | O_RDWR | O_CLOEXEC, 0600));
    symlink("above/../above/below", "link");
    must(open("link/real", O_RDONLY));
    must(gone = open("gone", O_CREAT | O_RDWR, 0600));
    must(unlink("gone"));
    must(dup(gone));
    must(openat(gone, "/proc/self/fd/4", O_RDONLY));
    rename("above", "beside");
    must(dup(file));
    must(fchmod(file, 0400));
    must(open("/dev/null", O_RDWR));
    unlink("link");
    unlink("beside/below/real");
    rmdir("beside/below");
    rmdir("beside");
}

static void deep(void)
{
    enum { LEVELS = 300 };
    int home;
    must(home = open(".", O_PATH));
    for (int i = 0; i < LEVELS; i++) {
        mkdir("d", 0700);
        must(chdir("d"));
    }
    must(open("bottom", O_CREAT | O_RDWR, 0600));
    unlink("bottom");
    for (int i = 0; i < LEVELS; i++) {
        must(chdir(".."));
        rmdir("d");
    }
    must(fchdir(home));
}

static void others(void)
{
    int ends[2], memory;
    must(pipe2(ends, O_CLOEXEC));
    must(write(ends[1], "x", 1));
    must(eventfd(1, 0));
    must(epoll_create1(EPOLL_CLOEXEC));
    must(syscall(SYS_pidfd_open, getpid(), 0));
    must(memory = memfd_create("named", MFD_CLOEXEC));
    must(ftruncate(memory, 4096));
}

static void sockets(void)
{
    struct sockaddr_in four = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
    struct sockaddr_un name = { AF_UNIX, "named.socket" };
    socklen_t length = sizeof four;
    int listening, calling, named, datagrams;
    char c;
    must(listening = socket(AF_INET, SOCK_STREAM, 0));
    must(bind(listening, (struct sockaddr *)&four, sizeof four));
    must(listen(listening, 1));
    must(getsockname(listening, (struct sockaddr *)&four, &length));
    must(calling = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    must(connect(calling, (struct sockaddr *)&four, sizeof four));
    must(accept(listening, NULL, NULL));
    must(write(calling, "x", 1));
    must(datagrams = socket(AF_INET6, SOCK_DGRAM, 0));
    bind(datagrams, (struct sockaddr *)&six, sizeof six);
    send(datagrams, &c, 0, MSG_DONTWAIT);
    must(named = socket(AF_UNIX, SOCK_STREAM, 0));
    must(bind(named, (struct sockaddr *)&name, sizeof name));
    must(listen(named, 1));
    unlink("named.socket");
}

static void passed(void)
{
    int pair[2], files[2];
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof files)];
    } control = { 0 };
    struct iovec part = { "x", 1 };
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control };
    must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    must(files[0] = open("/etc/passwd", O_RDONLY));
    must(files[1] = open("/", O_PATH));
    control.header = (struct cmsghdr){ CMSG_LEN(sizeof files), SOL_SOCKET, SCM_RIGHTS };
    memcpy(CMSG_DATA(&control.header), files, sizeof files);
    must(sendmsg(pair[0], &message, 0));
    memset(&control, 0, sizeof control);
    char c;
    part.iov_base = &c;
    must(recvmsg(pair[1], &message, 0));
    memcpy(files, CMSG_DATA(&control.header), sizeof files);
    must(read(files[0], &c, 1));
    must(close(files[1]));
}

int main(int argc, char **argv)
{
    must(argc == 2 ? chdir(argv[1]) : -1);
    files();
    deep();
    others();
    sockets();
    passed();
    must(chdir("/proc/sys"));
    must(chdir("kernel"));
    must(openat(AT_FDCWD, "ostype", O_RDONLY));
    int root;
    must(root = open("/", O_RDONLY | O_DIRECTORY));
    must(fchdir(root));
    must(openat(AT_FDCWD, "etc/../etc/passwd", O_RDONLY));
    if (geteuid() == 0) {
        must(chroot("/etc"));
        must(open("/passwd", O_RDONLY));
    }
    return 0;
}
