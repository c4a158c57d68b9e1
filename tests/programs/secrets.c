/* Says a word in all ways that a trace may record: arguments, environment, data, names of files, threads and sockets. A function is named by
   another word. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

static void *kept[8];

__attribute__((noinline)) int plugh(int n) {
    for (int i = 0; i < 8; i++) {
        kept[i] = malloc(1000 + n);
    }
    return n + (kept[0] != NULL);
}

static void data(void) {
    char buffer[4096];
    int fd = open("xyzzyfile", O_RDWR | O_CREAT, 0600);
    struct iovec iov = {"xyzzyvec", 8};
    if (write(fd, "xyzzydata", 9) != 9 || writev(fd, &iov, 1) != 8 || pread(fd, buffer, 64, 0) != 17) {
        exit(2);
    }
    mkdir("xyzzydir", 0700);
    symlink("xyzzytarget", "xyzzylink");
    if (readlink("xyzzylink", buffer, 64) < 0 || chdir("xyzzydir") != 0 || getcwd(buffer, sizeof buffer) == NULL) {
        exit(3);
    }
    DIR *dir = opendir("..");
    while (readdir(dir) != NULL) {
    }
    closedir(dir);
    close(fd);
}

static void sockets(void) {
    struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "xyzzysocket"};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0), ends[2];
    bind(fd, (struct sockaddr *)&name, sizeof name);
    listen(fd, 1);
    socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
    struct iovec iov = {"xyzzymessage", 12};
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
    if (sendmsg(ends[0], &message, 0) != 12) {
        exit(4);
    }
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "again") != 0) {
        setenv("WORD", "xyzzyenv", 1);
        execl(argv[0], argv[0], "again", "xyzzyargument", (char *)NULL);
        return 1;
    }
    prctl(PR_SET_NAME, "xyzzythread");
    data();
    sockets();
    return plugh(argc) == 0;
}
