// timeline.c - a bit of everything: functions, threads, allocations, system calls that fail, a signal, a static probe, a child. It exits with 3.
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include "note.h"

static volatile long sum;
__attribute__((noinline)) void work(int n) { for (long i = 0; i < n * 100000L; i++) sum += i; }

static void handler(int signal) { sum += signal; }

static void *thread(void *none) {
    for (int i = 0; i < 20; i++) {
        char *block = malloc(100 + i);
        work(i % 4);
        if (i % 2) free(block);
        open("/nowhere at all", O_RDONLY);
        NOTE2("desk", "round", "0", i, "x");
        usleep(200);
    }
    return none;
}

int main(void) {
    pthread_t threads[2];
    signal(SIGUSR1, handler);
    raise(SIGUSR1);
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, thread, 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    if (!fork()) execlp("cat", "cat", "/dev/null", (char *)0);
    wait(0);
    return 3;
}
