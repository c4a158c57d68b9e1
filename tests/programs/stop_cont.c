/* stop_cont.c - a child that stops itself and is continued by its parent.
 * Certain calls: fork; kill(getpid(), SIGSTOP) in the child, which stops; wait4(WUNTRACED) in the parent = the child,
 * stopped; kill(child, SIGCONT); wait4(WCONTINUED) = the child, continued, or already its exit; exit_group(5) in the
 * child. Exits with 0 when the parent saw the stop and the status 5. */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    int status = 0, stopped;
    pid_t child = fork();
    if (child == 0) {
        kill(getpid(), SIGSTOP);
        _exit(5);
    }
    if (waitpid(child, &status, WUNTRACED) != child)
        return 1;
    stopped = WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP;
    kill(child, SIGCONT);
    do {
        if (waitpid(child, &status, WCONTINUED) != child)
            return 1;
    } while (!WIFEXITED(status));
    return stopped && WEXITSTATUS(status) == 5 ? 0 : 1;
}
