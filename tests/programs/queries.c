// queries.c - what docs/QUERIES.md asks about: files that are missing or opened again and again, small writes and many fsyncs, memory that is
// kept, a connection that is refused and one that is not, children that fail, a pause that is longer with an argument. It exits with 0.
#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile long sum;
char *volatile kept[10];

__attribute__((noinline)) void work(void) { for (long i = 0; i < 40000000; i++) sum += i; }

__attribute__((noinline)) void settings(void) {
    for (int i = 0; i < 7; i++) open("/nowhere/settings", O_RDONLY);
}

__attribute__((noinline)) void rows(void) {
    char buffer[16];
    for (int i = 0; i < 25; i++) {
        int fd = open("rows", O_RDWR | O_CREAT, 0644);
        if (i == 0) write(fd, "a row of a table", 16);
        pread(fd, buffer, sizeof buffer, 0);
        close(fd);
    }
}

__attribute__((noinline)) void save(void) {
    int fd = open("log.new", O_WRONLY | O_CREAT | O_TRUNC, 0644);
    for (int i = 0; i < 20; i++) {
        write(fd, "line\n", 5);
        fsync(fd);
    }
    close(fd);
    rename("log.new", "log");
}

__attribute__((noinline)) void grow(void) {
    char *volatile block;
    for (int i = 0; i < 10; i++) {
        kept[i] = malloc(1000);
        block = malloc(50);
        free(block);
    }
}

static int connect_to(struct sockaddr_in *to) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)to, sizeof *to) == 0) {
        char buffer[100] = "request";
        send(fd, buffer, sizeof buffer, 0);
    }
    return close(fd);
}

static void network(void) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(1)};
    connect_to(&to);
    socklen_t length = sizeof to;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    to.sin_port = 0;
    bind(fd, (struct sockaddr *)&to, sizeof to);
    getsockname(fd, (struct sockaddr *)&to, &length);
    listen(fd, 5);
    if (!fork()) _exit(connect_to(&to));
    char buffer[100];
    int other = accept(fd, 0, 0);
    recv(other, buffer, sizeof buffer, MSG_WAITALL);
    close(other);
    wait(0);
}

int main(int argc, char **argv) {
    settings();
    rows();
    save();
    grow();
    network();
    work();
    for (int i = 0; i < 10; i++) usleep(argc > 1 ? 20000 : 500);
    if (!fork()) execlp("sh", "sh", "-c", "exit 3", (char *)0);
    wait(0);
    if (!fork()) {
        kill(getpid(), SIGTERM);
        pause();
    }
    wait(0);
    puts("done");
    return 0;
}
