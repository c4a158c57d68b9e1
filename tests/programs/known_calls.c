// Makes known numbers of calls, each kind told apart by its arguments, result, name of the thread, user or time.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void *worker(void *nothing)
{
    prctl(PR_SET_NAME, "a-worker");
    for (int i = 0; i < 6; i++)
        syscall(SYS_close, 4001);
    return nothing;
}

int main(void)
{
    // 7 that fail, 5 that do not, 3 of these with O_CREAT.
    char path[64];
    for (int i = 0; i < 7; i++) {
        snprintf(path, sizeof path, "/nonexistent/known-%d", i);
        syscall(SYS_openat, AT_FDCWD, path, O_RDONLY);
    }
    for (int i = 0; i < 5; i++) {
        int fd = syscall(SYS_openat, AT_FDCWD, "/dev/null", i < 3 ? O_WRONLY | O_CREAT : O_RDONLY, 0600);
        syscall(SYS_close, fd);
    }
    // 4 that succeed, 2 that do not.
    for (int i = 0; i < 4; i++)
        syscall(SYS_kill, getpid(), 0);
    for (int i = 0; i < 2; i++)
        syscall(SYS_kill, getpid(), 99);
    // 3 that take 20 ms.
    struct timespec t = { 0, 20000000 };
    for (int i = 0; i < 3; i++)
        syscall(SYS_nanosleep, &t, NULL);
    // Names that differ behind their 40th byte: 2 and 1.
    for (int i = 0; i < 3; i++)
        close(syscall(SYS_memfd_create, i < 2 ? "0123456789012345678901234567890123456789-this" : "0123456789012345678901234567890123456789-that", 0));
    // The same of strings that are no paths.
    for (int i = 0; i < 3; i++)
        syscall(SYS_getxattr, "/dev/null", i < 2 ? "user.0123456789012345678901234567890123456789-this" : "user.0123456789012345678901234567890123456789-that", NULL, 0);
    // 6 by a thread of another name.
    pthread_t thread;
    pthread_create(&thread, NULL, worker, NULL);
    pthread_join(thread, NULL);
    // 5 by a child that is another user, where that is allowed, and 2 before that.
    if (fork() == 0) {
        for (int i = 0; i < 2; i++)
            syscall(SYS_close, 4002);
        syscall(SYS_setresgid, 65534, 65534, 65534);
        syscall(SYS_setresuid, 65534, 65534, 65534);
        for (int i = 0; i < 5; i++)
            syscall(SYS_close, 4002);
        _exit(0);
    }
    wait(NULL);
    return 0;
}
