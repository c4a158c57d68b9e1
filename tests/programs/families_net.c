/* families_net.c - at least one call of the families of decoders for sockets, waiting, signals and timers, to compare with
 * strace (families.c has the others). It needs no rights and no network beyond loopback and makes the same calls each
 * time; calls that a kernel or a sandbox refuses are made all the same.
 * Certain calls: over inet and inet6: socket, setsockopt, bind, listen, getsockname, connect, accept4, getsockopt, sendto,
 * getpeername, shutdown; netlink: socket, bind; unix: socketpair, sendto, recvfrom, sendmsg, sendmmsg, recvmmsg, SO_PEERCRED, connect to a name
 * and to an abstract name; epoll_create1, epoll_ctl, epoll_wait, epoll_pwait, eventfd2, poll, ppoll, select or pselect6,
 * timerfd, signalfd4, futex, nanosleep; rt_sigaction, rt_sigprocmask, rt_sigtimedwait, sigaltstack, setitimer,
 * timer_create, timer_delete. Exits with 0. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <linux/futex.h>
#include <linux/netlink.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* Results that do not matter here; the call itself is what is wanted. */
#define MAKE(call) do { if ((long)(call) < 0) refused++; } while (0)
static int refused;

static void tcp(int family, struct sockaddr *address, socklen_t length)
{
    int one = 1, error, server = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0), client = socket(family, SOCK_STREAM, 0);
    struct sockaddr_storage peer;
    struct linger linger = { 1, 0 };
    struct timeval timeout = { 2, 500 };
    socklen_t peer_length = sizeof peer, error_length = sizeof error;
    MAKE(setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one));
    MAKE(bind(server, address, length));
    MAKE(listen(server, 5));
    MAKE(getsockname(server, address, &length));
    MAKE(connect(client, address, length));
    int accepted = accept4(server, (struct sockaddr *)&peer, &peer_length, SOCK_NONBLOCK);
    MAKE(setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout));
    MAKE(setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one));
    MAKE(setsockopt(client, SOL_SOCKET, SO_LINGER, &linger, sizeof linger));
    MAKE(getsockopt(client, SOL_SOCKET, SO_ERROR, &error, &error_length));
    MAKE(send(client, "over tcp", 8, MSG_NOSIGNAL));
    MAKE(getpeername(client, (struct sockaddr *)&peer, &peer_length));
    MAKE(shutdown(client, SHUT_WR));
    MAKE(close(accepted));
}

static void datagrams(void)
{
    int pair[2], route = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
    struct sockaddr_un name = { AF_UNIX, "families.socket" }, hidden = { AF_UNIX, "\0trapline families" };
    struct ucred credentials;
    socklen_t length = sizeof credentials;
    char text[16];
    struct iovec part = { "part", 4 };
    struct mmsghdr two[2] = { { { .msg_iov = &part, .msg_iovlen = 1 }, 0 }, { { .msg_iov = &part, .msg_iovlen = 1 }, 0 } };
    struct iovec room[2] = { { text, 3 }, { text + 3, 5 } };
    struct mmsghdr three[3];
    memset(three, 0, sizeof three);
    for (int i = 0; i < 3; i++)
        three[i].msg_hdr = (struct msghdr){ .msg_iov = room, .msg_iovlen = 2 };
    MAKE(bind(route, (struct sockaddr *)&kernel, sizeof kernel));
    MAKE(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, pair));
    MAKE(sendto(pair[0], "datagram", 8, MSG_DONTWAIT, NULL, 0));
    MAKE(recvfrom(pair[1], text, sizeof text, 0, NULL, NULL));
    MAKE(recvfrom(pair[1], text, sizeof text, MSG_PEEK, NULL, NULL));
    MAKE(sendmsg(pair[0], &two[0].msg_hdr, MSG_NOSIGNAL));
    MAKE(sendmmsg(pair[0], two, 2, 0));
    MAKE(recvmmsg(pair[1], three, 3, MSG_DONTWAIT, NULL));
    MAKE(recvmmsg(pair[1], three, 3, MSG_DONTWAIT, NULL));
    MAKE(getsockopt(pair[0], SOL_SOCKET, SO_PEERCRED, &credentials, &length));
    MAKE(connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&name, sizeof name));
    MAKE(connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&hidden, 2 + 18));
}

static void sockets(void)
{
    struct sockaddr_in four = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
    tcp(AF_INET, (struct sockaddr *)&four, sizeof four);
    tcp(AF_INET6, (struct sockaddr *)&six, sizeof six);
    datagrams();
}

static void waiting(void)
{
    int set = epoll_create1(EPOLL_CLOEXEC), counter = eventfd(1, EFD_NONBLOCK), word = 0;
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    struct epoll_event event = { EPOLLIN | EPOLLET, { .u64 = 77 } }, events[4];
    struct pollfd polled[2] = { { counter, POLLIN, 0 }, { -1, POLLOUT, 0 } };
    struct itimerspec spec = { { 0, 0 }, { 100, 5 } };
    struct timespec short_time = { 0, 1000 };
    fd_set readable;
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    MAKE(epoll_ctl(set, EPOLL_CTL_ADD, counter, &event));
    MAKE(epoll_wait(set, events, 4, 0));
    MAKE(epoll_pwait(set, events, 4, 0, &signals));
    MAKE(epoll_ctl(set, EPOLL_CTL_DEL, counter, NULL));
    MAKE(poll(polled, 2, 0));
    MAKE(ppoll(polled, 2, &short_time, &signals));
    FD_ZERO(&readable);
    FD_SET(counter, &readable);
    MAKE(select(counter + 1, &readable, NULL, NULL, &(struct timeval){ 0, 5 }));
    MAKE(pselect(counter + 1, &readable, NULL, NULL, &short_time, &signals));
    MAKE(timerfd_settime(timer, 0, &spec, NULL));
    MAKE(signalfd(-1, &signals, SFD_CLOEXEC));
    MAKE(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 1, NULL));
    MAKE(syscall(SYS_futex, &word, FUTEX_WAKE, 1));
    MAKE(nanosleep(&short_time, NULL));
}

static void timers_and_signals(void)
{
    struct sigaction action = { .sa_handler = SIG_IGN, .sa_flags = SA_RESTART | SA_NOCLDSTOP };
    struct itimerval timer = { { 0, 0 }, { 1000, 7 } };
    struct sigevent none = { .sigev_notify = SIGEV_NONE };
    stack_t stack = { .ss_sp = malloc(65536), .ss_size = 65536 };
    timer_t created;
    sigset_t set, old;
    sigfillset(&set);
    MAKE(sigaction(SIGUSR2, &action, NULL));
    MAKE(sigprocmask(SIG_BLOCK, &set, &old));
    MAKE(sigtimedwait(&set, NULL, &(struct timespec){ 0, 1 }));
    MAKE(sigprocmask(SIG_SETMASK, &old, NULL));
    MAKE(sigaltstack(&stack, NULL));
    MAKE(setitimer(ITIMER_VIRTUAL, &timer, NULL));
    MAKE(timer_create(CLOCK_MONOTONIC, &none, &created));
    MAKE(timer_delete(created));
}

int main(void)
{
    sockets();
    waiting();
    timers_and_signals();
    return 0;
}
