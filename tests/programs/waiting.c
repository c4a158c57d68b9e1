// Threads that wait, each for something else and named after it. If a wait ends, the program does: nobody may notice that it is looked at.
// Its argument is a directory for files that are locked.
#define _GNU_SOURCE
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, own = PTHREAD_MUTEX_INITIALIZER, robust, inheriting;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static sem_t semaphore;
static int lone[2], pipes[2], sockets[2], listening, connected, polled, ready[2], forked;
static pthread_t spinning;
static char byte;

#define THREAD(name, ...) \
    static void *name(void *unused) \
    { \
        pthread_setname_np(pthread_self(), #name); \
        __VA_ARGS__; \
        perror(#name); \
        _exit(3); \
    }
THREAD(t_condition, pthread_mutex_lock(&own); pthread_cond_wait(&condition, &own))
THREAD(t_semaphore, sem_wait(&semaphore))
THREAD(t_reader, pthread_rwlock_rdlock(&rwlock))
THREAD(t_writer, pthread_rwlock_wrlock(&rwlock))
THREAD(t_mutex, pthread_mutex_lock(&mutex))
THREAD(t_robust, pthread_mutex_lock(&robust))
THREAD(t_inheriting, pthread_mutex_lock(&inheriting))
THREAD(t_timed, struct timespec t = { 4000000000, 0 }; pthread_mutex_timedlock(&mutex, &t))
THREAD(t_lone_pipe, read(lone[0], &byte, 1))
THREAD(t_pipe, read(pipes[0], &byte, 1))
THREAD(t_unix, recv(sockets[0], &byte, 1, 0))
THREAD(t_accept, accept(listening, 0, 0))
THREAD(t_tcp, read(connected, &byte, 1))
THREAD(t_flock, flock(open("flock", O_RDWR), LOCK_EX))
THREAD(t_posix, struct flock l = { .l_type = F_WRLCK }; fcntl(open("posix", O_RDWR), F_SETLKW, &l))
THREAD(t_epoll, struct epoll_event e; epoll_wait(polled, &e, 1, -1))
THREAD(t_poll, struct pollfd p[2] = { { pipes[0], POLLIN }, { sockets[0], POLLIN } }; poll(p, 2, -1))
THREAD(t_child, wait(0))
THREAD(t_its_child, waitpid(forked, 0, 0))
THREAD(t_pidfd, siginfo_t i; waitid(3 /* P_PIDFD */, syscall(SYS_pidfd_open, forked, 0), &i, WEXITED))
THREAD(t_poll_pidfd, struct pollfd p = { syscall(SYS_pidfd_open, forked, 0), POLLIN }; poll(&p, 1, -1))
THREAD(t_signal, sigset_t set; sigemptyset(&set); sigaddset(&set, SIGUSR2); sigwaitinfo(&set, 0))
THREAD(t_spins, for (;;) __asm__ volatile(""))
THREAD(t_join, pthread_join(spinning, 0))

static void child(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(pipes[0]);
    close(sockets[0]);
    close(connected);
    close(lone[0]);
    close(lone[1]);
    flock(open("flock", O_RDWR | O_CREAT, 0600), LOCK_EX);
    struct flock l = { .l_type = F_WRLCK };
    fcntl(open("posix", O_RDWR | O_CREAT, 0600), F_SETLKW, &l);
    write(ready[1], "", 1);
    for (;;)
        pause();
}

int main(int argc, char **argv)
{
    if (argc < 2 || chdir(argv[1]))
        return 1;
    pthread_mutexattr_t a;
    pthread_mutexattr_init(&a);
    pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&robust, &a);
    pthread_mutexattr_init(&a);
    pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&inheriting, &a);
    sem_init(&semaphore, 0, 0);
    pthread_mutex_lock(&mutex);
    pthread_mutex_lock(&robust);
    pthread_mutex_lock(&inheriting);
    pthread_rwlock_wrlock(&rwlock);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, 0);
    pipe(ready);
    pipe(lone);
    pipe(pipes);
    socketpair(AF_UNIX, SOCK_STREAM, 0, sockets);
    polled = epoll_create1(0);
    struct epoll_event e = { EPOLLIN };
    epoll_ctl(polled, EPOLL_CTL_ADD, pipes[0], &e);
    listening = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t n = sizeof in;
    bind(listening, (void *)&in, n);
    listen(listening, 5);
    getsockname(listening, (void *)&in, &n);
    connected = socket(AF_INET, SOCK_STREAM, 0);
    connect(connected, (void *)&in, n);
    int accepted = accept(listening, 0, 0);
    forked = fork();
    if (forked == 0)
        child();
    read(ready[0], &byte, 1);
    close(pipes[1]);
    close(sockets[1]);
    close(accepted);
    pthread_t t;
    void *(*all[])(void *) = { t_condition, t_semaphore, t_reader, t_writer, t_mutex, t_robust, t_inheriting, t_timed,
                               t_lone_pipe, t_pipe, t_unix, t_accept, t_tcp, t_epoll, t_poll, t_child, t_signal,
                               t_flock, t_posix, t_its_child, t_pidfd, t_poll_pidfd };
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
        pthread_create(&t, 0, all[i], 0);
    pthread_create(&spinning, 0, t_spins, 0);
    pthread_create(&t, 0, t_join, 0);
    for (;;)
        pause();
}
