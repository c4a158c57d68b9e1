// Allocates when it is told to: a line "large N" (blocks of 54321 bytes, each freed), "small N" (of 21 bytes, each freed), "threads N" (large
// ones in each of 3 threads), "kept N" (large ones that stay) or "maps N" (mappings of 12288 bytes, each unmapped) on stdin; "done" on stdout when that is done.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { LARGE = 54321, SMALL = 21, MAPPED = 12288 };

static void __attribute__((noinline)) allocates(long n, size_t size, int kept) {
    for (long i = 0; i < n; i++) {
        char *block = malloc(size);
        __asm__ volatile("" ::"r"(block) : "memory");
        if (!kept) free(block);
    }
}

static void *thread(void *n) {
    allocates((long)n, LARGE, 0);
    return NULL;
}

int main(void) {
    static char line[64], what[16];
    static char in[4096], out[4096];
    setvbuf(stdin, in, _IOFBF, sizeof in);
    setvbuf(stdout, out, _IOFBF, sizeof out);
    long n;
    while (fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "%15s %ld", what, &n) != 2) return 2;
        if (!strcmp(what, "large")) allocates(n, LARGE, 0);
        else if (!strcmp(what, "small")) allocates(n, SMALL, 0);
        else if (!strcmp(what, "kept")) allocates(n, LARGE, 1);
        else if (!strcmp(what, "threads")) {
            pthread_t all[3];
            for (int i = 0; i < 3; i++) pthread_create(&all[i], NULL, thread, (void *)n);
            for (int i = 0; i < 3; i++) pthread_join(all[i], NULL);
        } else if (!strcmp(what, "maps")) {
            for (long i = 0; i < n; i++) {
                void *at = mmap(NULL, MAPPED, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                if (at == MAP_FAILED || munmap(at, MAPPED)) return 4;
            }
        } else return 3;
        puts("done");
        fflush(stdout);
    }
    return 0;
}
