// crowd threads|processes N: N threads, or N children of fork, that are all there at once and make 300 calls each. Says how often they gave up the
// processor during the last 100, which is twice or more for each call that stops.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static pthread_barrier_t *all_there;
static long *switches;

static long given_up(void) {
    struct rusage r;
    getrusage(RUSAGE_THREAD, &r);
    return r.ru_nvcsw;
}

static void *calls(void *arg) {
    (void)arg;
    pthread_barrier_wait(all_there);
    for (int i = 0; i < 200; i++)
        getppid();
    long before = given_up();
    for (int i = 0; i < 100; i++)
        getppid();
    __atomic_fetch_add(switches, given_up() - before, __ATOMIC_RELAXED);
    pthread_barrier_wait(all_there);
    return NULL;
}

int main(int argc, char **argv) {
    if (argc < 3)
        return 2;
    int threads = !strcmp(argv[1], "threads"), n = atoi(argv[2]);
    char *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    all_there = (void *)shared;
    switches = (void *)(shared + 2048);
    pthread_barrierattr_t a;
    pthread_barrierattr_init(&a);
    pthread_barrierattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(all_there, &a, n);
    pthread_t ids[n];
    for (int i = 0; i < n; i++)
        if (threads) {
            if (pthread_create(&ids[i], NULL, calls, NULL))
                return 1;
        } else if (!fork()) {
            calls(NULL);
            _exit(0);
        }
    for (int i = 0; i < n; i++)
        if (threads)
            pthread_join(ids[i], NULL);
        else
            wait(NULL);
    printf("%d calls, processor given up %ld times\n", n * 100, *switches);
    return 0;
}
