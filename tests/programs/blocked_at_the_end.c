/* Threads are in calls when the process ends: by _exit(2), by a signal, or because the first thread is done. */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define OWN __attribute__((noinline, noipa))
static sem_t there;
static volatile int calls;
OWN void blocked(void) { sem_post(&there); pause(); calls++; }
OWN void around(void) { blocked(); calls++; }
OWN void *work(void *unused) { around(); return unused; }
OWN void waits(void)
{
    struct timespec time = {.tv_nsec = 60000000};
    nanosleep(&time, NULL);
    calls++;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    sem_init(&there, 0, 0);
    for (int n = 0; n < 4; n++)
        pthread_create(&thread, NULL, work, NULL);
    for (int n = 0; n < 4; n++)
        sem_wait(&there);
    waits();
    if (argc > 1 && !strcmp(argv[1], "exit"))
        _exit(3);
    if (argc > 1 && !strcmp(argv[1], "kill"))
        kill(getpid(), SIGKILL);
    return 0;
}
