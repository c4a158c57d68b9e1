// fork, vfork, posix_spawn, system, and exec, of itself.
#define _GNU_SOURCE
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

int in_child(int n) { return n * 3 + 7; }
int in_parent(int n) { return n * 5 + 3; }
int executed(int n) { return n * 7 + 11; }

int main(int argc, char **argv) {
    if (argc > 1) return executed(atoi(argv[1]));
    int sum = 0, status;
    setvbuf(stdout, NULL, _IONBF, 0);
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0) _exit(in_child(i));
        sum += in_parent(i);
        waitpid(child, &status, 0);
        sum += WEXITSTATUS(status);
    }
    pid_t child = vfork();
    if (child == 0) {
        execl(argv[0], argv[0], "1", NULL);
        _exit(1);
    }
    waitpid(child, &status, 0);
    sum += WEXITSTATUS(status);
    char *arguments[] = {argv[0], "2", NULL};
    posix_spawn(&child, argv[0], NULL, NULL, arguments, environ);
    waitpid(child, &status, 0);
    sum += WEXITSTATUS(status);
    char command[4096];
    snprintf(command, sizeof command, "%s 3", argv[0]);
    sum += WEXITSTATUS(system(command));
    if ((child = fork()) == 0) {
        char *empty[] = {NULL};
        arguments[1] = "4";
        execve(argv[0], arguments, empty);
    }
    waitpid(child, &status, 0);
    sum += WEXITSTATUS(status);
    if ((child = fork()) == 0) {
        execlp("/does/not/exist", "x", NULL);
        arguments[1] = "5";
        syscall(SYS_execve, argv[0], arguments, environ);
    }
    waitpid(child, &status, 0);
    sum += WEXITSTATUS(status);
    printf("%d\n", sum);
    fflush(stdout);
    execl(argv[0], argv[0], "6", NULL);
}
