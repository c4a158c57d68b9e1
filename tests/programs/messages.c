/* Messages of System V queues, and several messages in one call, over pairs of sockets of UNIX and of UDP.
 * Certain calls, eight times: msgsnd and msgrcv of 0 to 100 bytes, at the end of memory, behind it, from no address; sendmmsg and recvmmsg of 0, 1, 3, 6 and
 * 140 messages, with names, control data, several buffers, partial results, a time limit, nothing to receive, bad addresses of the array, of its second
 * element, of a buffer, of an array of buffers. Twice with 1024 messages. With an argument: so many pairs of sendmmsg and recvmmsg of three
 * messages, and then how often the processor was given up is printed. Exits with 0, or with 1 if such a pair fails. */
#define _GNU_SOURCE
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { MOST = 1024 };

struct text {
    long type;
    char text[200];
};

static char *end; /* Behind it there is no memory. */
static char data[MOST][40], room[MOST][40], control[8][64];
static struct iovec parts[MOST][3], rooms[MOST][2];
static struct mmsghdr out[MOST], in[MOST];
static struct sockaddr_in names[MOST];

static void queues(int queue)
{
    struct text text = { 2, "hello" }, got;
    struct text *edge = (struct text *)(end - 16);
    memset(text.text + 5, 'x', 100);
    memset(&got, 0, sizeof got);
    for (size_t n = 0; n <= 100; n += 50)
        msgsnd(queue, &text, n, 0);
    msgrcv(queue, &got, 200, 0, 0);
    msgrcv(queue, &got, 200, 0, 0);
    msgrcv(queue, &got, 3, 0, MSG_NOERROR);
    msgrcv(queue, &got, 200, 0, IPC_NOWAIT);
    edge->type = 3;
    memcpy(edge->text, "abcdefgh", 8);
    msgsnd(queue, edge, 8, 0);
    msgsnd(queue, edge, 9, 0);
    msgsnd(queue, end - 4, 9, 0);
    msgsnd(queue, end, 9, 0);
    msgsnd(queue, (void *)8, 9, 0);
    msgsnd(queue, NULL, 9, 0);
    msgsnd(queue, &text, -1UL, 0);
    msgrcv(queue, edge, 8, 0, 0);
    text.type = -1;
    msgsnd(queue, &text, 5, 0);
}

static void prepare(void)
{
    for (int i = 0; i < MOST; i++) {
        memset(data[i], 'a' + i % 26, sizeof data[i]);
        parts[i][0] = (struct iovec){ data[i], i % 8 };
        parts[i][1] = (struct iovec){ data[i], 0 };
        parts[i][2] = (struct iovec){ data[i], 20 + i % 20 };
        out[i] = (struct mmsghdr){ { .msg_iov = parts[i], .msg_iovlen = 1 + i % 3 }, 12345 };
        rooms[i][0] = (struct iovec){ room[i], 4 };
        rooms[i][1] = (struct iovec){ room[i] + 4, 30 };
        in[i] = (struct mmsghdr){ { .msg_iov = rooms[i], .msg_iovlen = 2 }, 9 };
    }
}

static void with_names(void)
{
    for (int i = 0; i < MOST; i++) {
        in[i].msg_hdr.msg_name = &names[i];
        in[i].msg_hdr.msg_namelen = i % 2 ? sizeof names[i] : 5;
    }
}

static void with_control(void)
{
    for (int i = 0; i < 3; i++) {
        struct cmsghdr *c = (struct cmsghdr *)control[i];
        *c = (struct cmsghdr){ .cmsg_len = CMSG_LEN(4), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS };
        memset(CMSG_DATA(c), 0, 4);
        out[i].msg_hdr.msg_control = c;
        out[i].msg_hdr.msg_controllen = CMSG_SPACE(4);
        in[i].msg_hdr.msg_control = control[4 + i];
        in[i].msg_hdr.msg_controllen = sizeof control[4 + i];
    }
}

static void close_received(int n)
{
    for (int i = 0; i < n; i++) {
        struct cmsghdr *c = CMSG_FIRSTHDR(&in[i].msg_hdr);
        if (c != NULL && c->cmsg_type == SCM_RIGHTS)
            close(*(int *)CMSG_DATA(c));
    }
}

static void several(int a, int b)
{
    struct timespec limit = { 50, 0 };
    prepare();
    sendmmsg(a, out, 0, 0);
    recvmmsg(b, in, 0, MSG_DONTWAIT, NULL);
    sendmmsg(a, out, 1, 0);
    recvmmsg(b, in, 1, MSG_DONTWAIT, NULL);
    sendmmsg(a, out, 3, 0);
    /* Some of them only. */
    recvmmsg(b, in, 2, MSG_DONTWAIT, &limit);
    recvmmsg(b, in, 6, MSG_DONTWAIT, NULL);
    recvmmsg(b, in, 6, MSG_DONTWAIT, NULL);
    recvmmsg(-1, in, 6, MSG_DONTWAIT, &limit);
    /* The second one cannot be sent, or is not there. */
    out[1].msg_hdr.msg_iov = (struct iovec *)8;
    sendmmsg(a, out, 3, 0);
    out[1].msg_hdr.msg_iov = parts[1];
    parts[1][0] = (struct iovec){ end - 2, 20 };
    sendmmsg(a, out, 3, 0);
    memcpy(end - sizeof *out - 8, out, sizeof *out);
    sendmmsg(a, (struct mmsghdr *)(end - sizeof *out - 8), 2, 0);
    recvmmsg(b, in, 6, MSG_DONTWAIT, NULL);
    sendmmsg(a, (struct mmsghdr *)end, 2, 0);
    sendmmsg(a, NULL, 2, 0);
    recvmmsg(b, (struct mmsghdr *)8, 2, MSG_DONTWAIT, NULL);
    sendmmsg(a, out, 1, 0);
    in[0].msg_hdr.msg_iov = (struct iovec *)(end - 16);
    recvmmsg(b, in, 2, MSG_DONTWAIT, NULL);
    prepare();
    with_names();
    sendmmsg(a, out, 6, 0);
    recvmmsg(b, in, 6, MSG_DONTWAIT, &limit);
    prepare();
    with_control();
    sendmmsg(a, out, 3, 0);
    close_received(recvmmsg(b, in, 3, MSG_DONTWAIT, NULL));
    recvmmsg(b, in, 3, MSG_DONTWAIT, NULL);
    prepare();
    sendmmsg(a, out, 140, MSG_DONTWAIT);
    recvmmsg(b, in, 140, MSG_DONTWAIT, NULL);
}

static int many(int a, int b, int pairs)
{
    struct rusage usage;
    prepare();
    for (int i = 0; i < pairs; i++)
        if (sendmmsg(a, out, 3, 0) != 3 || recvmmsg(b, in, 3, 0, NULL) != 3)
            return 1;
    getrusage(RUSAGE_SELF, &usage);
    printf("%ld\n", usage.ru_nvcsw);
    return 0;
}

int main(int argc, char **argv)
{
    int pair[2], udp[2], queue;
    struct sockaddr_in name[2];
    char *memory = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    end = memory + 4096;
    munmap(end, 4096);
    socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, pair);
    if (argc > 1)
        return many(pair[0], pair[1], atoi(argv[1]));
    for (int i = 0; i < 2; i++) {
        socklen_t length = sizeof name[i];
        udp[i] = socket(AF_INET, SOCK_DGRAM, 0);
        name[i] = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        bind(udp[i], (struct sockaddr *)&name[i], sizeof name[i]);
        getsockname(udp[i], (struct sockaddr *)&name[i], &length);
    }
    connect(udp[0], (struct sockaddr *)&name[1], sizeof name[1]);
    queue = msgget(IPC_PRIVATE, 0600);
    for (int i = 0; i < 8; i++) {
        queues(queue);
        several(pair[0], pair[1]);
        several(udp[0], udp[1]);
    }
    msgctl(queue, IPC_RMID, NULL);
    prepare();
    for (int i = 0; i < 2; i++) {
        sendmmsg(udp[0], out, MOST, 0);
        recvmmsg(udp[1], in, 100, MSG_DONTWAIT, NULL);
        recvmmsg(udp[1], in, MOST, MSG_DONTWAIT, NULL);
        recvmmsg(udp[1], in, MOST, MSG_DONTWAIT, NULL);
    }
    return 0;
}
