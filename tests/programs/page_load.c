// What `cargo xtask bench page` records: many calls of many threads, or calls, functions and allocations mixed.
//
//     page_load calls THREADS CALLS      processes of 15 threads, ten at a time; about so many calls
//     page_load mixed N                  four threads; N calls, N calls of step, N blocks, released later
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 15, AT_ONCE = 10, WORKERS = 4, HELD = 1000 };

static long rounds;

// Five calls a round: a file that is there or one that is not, by names that change.
static void *calls(void *arg) {
    long seed = (long)arg;
    for (long i = 0; i < rounds; i++) {
        char path[64], buffer[100];
        struct stat about;
        int missing = (i + seed) % 9 == 0;
        snprintf(path, sizeof path, missing ? "/nowhere/%ld" : "/proc/self/fdinfo/%ld", missing ? i % 50 : i % 3);
        int fd = open(path, O_RDONLY);
        if (fd < 0) {
            fd = open("/dev/null", O_RDONLY);
        }
        fstat(fd, &about);
        read(fd, buffer, sizeof buffer);
        lseek(fd, 0, SEEK_SET);
        close(fd);
    }
    return NULL;
}

__attribute__((noinline)) void *step(long i) {
    return malloc(16 + i * 7919 % 3000);
}

static void *mixed(void *arg) {
    void *held[HELD] = {0};
    long seed = (long)arg;
    for (long i = 0; i < rounds; i++) {
        // How much is held goes up and down.
        long at = i % (10 + (i / 5000 + seed) % 10 * 99);
        free(held[at]);
        held[at] = step(i);
        lseek(0, 0, SEEK_CUR);
    }
    for (int i = 0; i < HELD; i++) {
        free(held[i]);
    }
    return NULL;
}

static void in_threads(int n, void *work(void *)) {
    pthread_t all[n];
    for (long i = 0; i < n; i++) {
        pthread_create(&all[i], NULL, work, (void *)i);
    }
    for (int i = 0; i < n; i++) {
        pthread_join(all[i], NULL);
    }
}

int main(int argc, char **argv) {
    if (argc == 3 && !strcmp(argv[1], "mixed")) {
        rounds = atol(argv[2]) / WORKERS;
        in_threads(WORKERS, mixed);
        return 0;
    }
    if (argc != 4 || strcmp(argv[1], "calls")) {
        return 2;
    }
    long threads = atol(argv[2]);
    rounds = atol(argv[3]) / threads / 5;
    for (long begun = 0, running = 0; begun < threads || running; begun += THREADS) {
        if (begun < threads && !fork()) {
            in_threads(THREADS, calls);
            return 0;
        }
        running += begun < threads;
        if (running >= AT_ONCE || begun + THREADS >= threads) {
            running -= wait(NULL) > 0;
        }
    }
    return 0;
}
