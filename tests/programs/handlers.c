// handlers.c - threads that install handlers and ask for them without a pause, for tracers that come and go.
// Whatever sigaction(2) says is the program's own. It ends when SIGTERM comes: "right", and how many things went wrong.
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

static atomic_int over;
static atomic_long wrong, handled;
// Says on stderr which check it was, and what it saw.
#define WRONG(seen) (wrong++, dprintf(2, "handlers.c:%d: wrong, %p\n", __LINE__, (void *)(seen).sa_handler))

static void first(int s) { (void)s; handled++; }
static void second(int s) { (void)s; handled++; }
static void on_end(int s) { (void)s; over = 1; }

static void *reads(void *none) {
    struct sigaction there;
    while (!over) {
        sigaction(SIGUSR1, 0, &there);
        if (there.sa_handler != first || !sigismember(&there.sa_mask, SIGURG)) WRONG(there);
    }
    return none;
}

static void *sets(void *none) {
    struct sigaction there, to = { .sa_handler = first };
    while (!over) {
        long before = handled;
        to.sa_handler = first;
        sigaction(SIGUSR2, &to, 0);
        sigaction(SIGUSR2, 0, &there);
        if (there.sa_handler != first) WRONG(there);
        to.sa_handler = second;
        sigaction(SIGUSR2, &to, &there);
        if (there.sa_handler != first) WRONG(there);
        pthread_kill(pthread_self(), SIGUSR2);
        if (handled != before + 1) WRONG(there);
    }
    return none;
}

int main(void) {
    struct sigaction to = { .sa_handler = first };
    sigaddset(&to.sa_mask, SIGURG);
    sigaction(SIGUSR1, &to, 0);
    signal(SIGTERM, on_end);
    pthread_t threads[2];
    pthread_create(&threads[0], 0, reads, 0);
    pthread_create(&threads[1], 0, sets, 0);
    puts("begun");
    fflush(stdout);
    while (!over) usleep(1000);
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
    printf("right %ld\n", (long)wrong);
    return wrong != 0;
}
