// Requests over sockets: one thread reads them, another one answers. Those of the second socket take longer.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static int hand[2];

static void answer(int nth, int fd) {
    struct timespec t = { .tv_nsec = nth == 1 ? 20000000 : 1000000 };
    char *page = malloc(3000);
    nanosleep(&t, NULL);
    strcpy(page, "ok");
    send(fd, page, 2, 0);
    free(page);
}

static void *work(void *pairs) {
    int nth, (*sockets)[2] = pairs;
    while (read(hand[0], &nth, sizeof nth) == sizeof nth)
        answer(nth, sockets[nth][1]);
    return NULL;
}

int main(void) {
    int sockets[3][2];
    pthread_t worker;
    char text[4];
    if (pipe(hand))
        return 1;
    for (int nth = 0; nth < 3; nth++)
        socketpair(AF_UNIX, SOCK_STREAM, 0, sockets[nth]);
    pthread_create(&worker, NULL, work, sockets);
    for (int nth = 0; nth < 3; nth++) {
        write(sockets[nth][0], "get", 3);
        recv(sockets[nth][1], text, 3, 0);
        write(hand[1], &nth, sizeof nth);
        read(sockets[nth][0], text, 2);
    }
    close(hand[1]);
    return pthread_join(worker, NULL);
}
