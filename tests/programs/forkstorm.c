/* forkstorm.c - many short processes.
 * Usage: forkstorm [PROCESSES], default 100.
 * Certain calls: PROCESSES successful forks (clone); in child i one getppid and exit_group(i & 63); in the parent one
 * successful wait4 for each. Prints the number of children whose exit status was the right one. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int right;

/* The exit statuses arrive in any order; the pid says which child it was. */
static int reap(const pid_t *pids, int started)
{
    int status;
    pid_t pid = wait(&status);
    if (pid < 0)
        return -1;
    /* From the end: where a pid was used twice, the later child is the one that can still exit. */
    for (int i = started - 1; i >= 0; i--)
        if (pids[i] == pid) {
            right += WIFEXITED(status) && WEXITSTATUS(status) == (i & 63);
            return 0;
        }
    return -1;
}

int main(int argc, char **argv)
{
    int processes = argc > 1 ? atoi(argv[1]) : 100, waited = 0;
    pid_t *pids = calloc((size_t)processes + 1, sizeof *pids);
    for (int i = 0; i < processes; i++) {
        /* At the limit of processes, make room and try again. */
        while ((pids[i] = fork()) < 0) {
            if (reap(pids, i) < 0)
                return 1;
            waited++;
        }
        if (pids[i] == 0) {
            syscall(SYS_getppid);
            _exit(i & 63);
        }
    }
    for (; waited < processes; waited++)
        if (reap(pids, processes) < 0)
            return 1;
    printf("%d\n", right);
    return right == processes ? 0 : 1;
}
