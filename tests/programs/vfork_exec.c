/* vfork_exec.c - vfork, exec in the child, and a vfork whose exec fails.
 * Usage: vfork_exec [PROGRAM [ARGS...]], default /bin/true.
 * Certain calls: vfork twice; in the first child execve(PROGRAM) = 0; in the second execve("/nonexistent/program") =
 * -1 ENOENT and exit_group(127); in the parent wait4 for each. Exits with the status of PROGRAM. */
#define _GNU_SOURCE
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static int run(char **argv)
{
    int status = 0;
    pid_t pid = vfork();
    if (pid == 0) {
        execve(argv[0], argv, environ);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
        return 1;
    return WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
    char *fallback[] = { "/bin/true", NULL }, *missing[] = { "/nonexistent/program", NULL };
    int status = run(argc > 1 ? argv + 1 : fallback);
    return run(missing) == 127 ? status : 1;
}
