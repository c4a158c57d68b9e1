/* blocked_threads
 * Three threads and the first sleep in read(2) and pause(2); a child stops the group, waits for the stop, continues and ends it.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

static int never[2];

static void *sleeps(void *unused)
{
    char c;
    while (read(never[0], &c, 1) < 0)
        ;
    return unused;
}

static char state(pid_t pid)
{
    char path[64], state = '?';
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "r");
    if (f) {
        fscanf(f, "%*d (%*[^)]) %c", &state);
        fclose(f);
    }
    return state;
}

int main(void)
{
    pthread_t threads[3];
    if (pipe(never))
        return 1;
    pid_t group = fork();
    if (group < 0)
        return 2;
    if (group == 0) {
        for (int i = 0; i < 3; i++)
            if (pthread_create(&threads[i], NULL, sleeps, NULL))
                return 3;
        pause();
        return 4;
    }
    usleep(200000);
    kill(group, SIGSTOP);
    for (int i = 0; i < 1000 && state(group) != 'T' && state(group) != 't'; i++)
        usleep(10000);
    usleep(100000);
    kill(group, SIGCONT);
    usleep(100000);
    kill(group, SIGKILL);
    return waitpid(group, NULL, 0) == group ? 0 : 5;
}
