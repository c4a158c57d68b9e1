/* How much of its address space a process uses, KB: `space N`, with so many threads, which allocate;
 * `load LIBRARY N`: a library comes and goes; `deep N`: so many calls are open
 * at once, in a thread with a stack for them. */
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static unsigned long kilobytes, mappings;

static void look(void) {
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[4096];
    unsigned long from, to;
    kilobytes = mappings = 0;
    while (fgets(line, sizeof line, maps)) {
        mappings++;
        if (sscanf(line, "%lx-%lx", &from, &to) == 2 && !(from >> 63))
            kilobytes += (to - from) >> 10;
    }
    fclose(maps);
}

__attribute__((noinline)) long deep(long n) { return n == 0 ? 0 : 1 + deep(n - 1); }

static pthread_barrier_t all;

static void *volatile block;
static void allocates(void) {
    void *own = malloc(100);
    block = own;
    free(own);
}

static void *lives(void *unused) {
    allocates();
    deep(3);
    pthread_barrier_wait(&all);
    pause();
    return unused;
}

static void *in_thread(void *n) {
    printf("%ld\n", deep((long)n));
    return 0;
}

int main(int argc, char **argv) {
    if (!strcmp(argv[1], "space")) {
        int more = atoi(argv[2]) - 1;
        mallopt(M_ARENA_MAX, 1);
        pthread_barrier_init(&all, 0, more + 1);
        for (int i = 0; i < more; i++) {
            pthread_t thread;
            if (pthread_create(&thread, 0, lives, 0)) return 1;
        }
        allocates();
        deep(3);
        pthread_barrier_wait(&all);
        look();
        printf("%lu\n", kilobytes);
    } else if (!strcmp(argv[1], "load")) {
        unsigned long first = 0;
        for (int i = 0, n = atoi(argv[3]); i < n; i++) {
            void *library = dlopen(argv[2], RTLD_NOW);
            if (!library || dlclose(library)) return 1;
            if (i == 9 || i == n - 1) look();
            if (i == 9) first = mappings;
        }
        printf("%lu\n", mappings - first);
    } else if (!strcmp(argv[1], "deep")) {
        pthread_attr_t attributes;
        pthread_t thread;
        pthread_attr_init(&attributes);
        pthread_attr_setstacksize(&attributes, 1 << 30);
        pthread_create(&thread, &attributes, in_thread, (void *)atol(argv[2]));
        pthread_join(thread, 0);
    }
    return 0;
}
