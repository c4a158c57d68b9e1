/* exec_from_thread.c - a thread that is not the leader calls execve: the process goes on under the leader's pid, all
 * other threads die.
 * Usage: exec_from_thread [PROGRAM [ARGS...]], default /bin/true.
 * Certain calls: two clone/clone3 (one thread that stays in pause, one that execs); pause in the main thread and in the
 * first; execve(PROGRAM) = 0 from the second, which ends under the leader's pid. Exits with PROGRAM's status. */
#define _GNU_SOURCE
#include "blocked.h"
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

extern char **environ;
static volatile int idle_tid;
static char **command;

static void *idle(void *unused)
{
    (void)unused;
    idle_tid = (int)syscall(SYS_gettid);
    for (;;)
        pause();
    return NULL;
}

static void *exec(void *unused)
{
    (void)unused;
    while (idle_tid == 0)
        usleep(1000);
    await_blocked(getpid(), idle_tid);
    await_blocked(getpid(), getpid());
    execve(command[0], command, environ);
    _exit(127);
}

int main(int argc, char **argv)
{
    char *fallback[] = { "/bin/true", NULL };
    pthread_t threads[2];
    command = argc > 1 ? argv + 1 : fallback;
    if (pthread_create(&threads[0], NULL, idle, NULL) || pthread_create(&threads[1], NULL, exec, NULL))
        return 1;
    for (;;)
        pause();
}
