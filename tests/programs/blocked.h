/* blocked.h - waits until a task sleeps in a call, so that programs need no guessed delays.
 * Reads /proc/PID/task/TID/stat until the state letter is S. A task stopped by a tracer shows t, and one that still
 * runs shows R, so S means: inside a blocking call. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char task_state(int pid, int tid)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", pid, tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return '?';
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0)
        return '?';
    text[n] = 0;
    char *after_name = strrchr(text, ')');
    return after_name && after_name[1] ? after_name[2] : '?';
}

static void await_blocked(int pid, int tid)
{
    while (task_state(pid, tid) != 'S')
        usleep(2000);
}
