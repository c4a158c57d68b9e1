// Calls functions when it is told to: a line "work N", "other N", "mark N" (a static probe, with 0 to N-1), "threads N" (work, in each of
// 3 threads), "in N" (into another call of deep) or "out N" on stdin, "done" on stdout when that is done. With a file: its first 8 bytes
// count the calls of work.
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "note.h"

static volatile long nowhere;
static volatile long *made = &nowhere;

static void done(void) {
    puts("done");
    fflush(stdout);
}

long work(long n) { return __atomic_add_fetch(made, 1, __ATOMIC_RELAXED) * 3 + n; }
long other(long n) { return *made * 5 + n; }

static void marks(long n) {
    for (long i = 0; i < n; i++) NOTE("steered", "mark", "0", "-8@%[i]", [i] "r"(i));
}

static void *works(void *n) {
    for (long i = 0; i < (long)n; i++) work(i);
    return NULL;
}

long deep(long n) {
    char line[64], what[16];
    while (fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "%15s %ld", what, &n) != 2) return 2;
        if (!strcmp(what, "work")) works((void *)n);
        else if (!strcmp(what, "other")) for (long i = 0; i < n; i++) other(i);
        else if (!strcmp(what, "mark")) marks(n);
        else if (!strcmp(what, "threads")) {
            pthread_t all[3];
            for (int i = 0; i < 3; i++) pthread_create(&all[i], NULL, works, (void *)n);
            for (int i = 0; i < 3; i++) pthread_join(all[i], NULL);
        } else if (!strcmp(what, "in")) {
            done();
            if (deep(n)) return 2;
        } else if (!strcmp(what, "out")) return 0;
        else return 3;
        done();
    }
    return 0;
}

int main(int argc, char **argv) {
    if (argc > 1) {
        int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
        if (fd < 0 || ftruncate(fd, 4096)) return 4;
        made = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (made == MAP_FAILED) return 5;
    }
    return deep(0);
}
