/* exit_group_in_flight.c - the process ends while its threads are inside calls.
 * Certain calls: three clone/clone3; read on an empty pipe in one thread, futex(FUTEX_WAIT) in the second, pause in the
 * third, none of which ever returns; exit_group(7) in the main thread once all three are blocked. */
#define _GNU_SOURCE
#include "blocked.h"
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

static int ends[2];
static unsigned word;
static volatile int tids[3];

static void *block(void *number)
{
    int which = (int)(long)number;
    char byte;
    tids[which] = (int)syscall(SYS_gettid);
    if (which == 0 && read(ends[0], &byte, 1) < 0)
        return NULL;
    if (which == 1)
        syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
    if (which == 2)
        pause();
    return NULL;
}

int main(void)
{
    pthread_t threads[3];
    if (pipe(ends) != 0)
        return 1;
    for (long i = 0; i < 3; i++)
        if (pthread_create(&threads[i], NULL, block, (void *)i) != 0)
            return 1;
    for (int i = 0; i < 3; i++) {
        while (tids[i] == 0)
            usleep(1000);
        await_blocked(getpid(), tids[i]);
    }
    syscall(SYS_exit_group, 7);
}
