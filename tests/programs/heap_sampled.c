/* Allocates known amounts in four threads, and frees some of them again: of each function, its allocations and what is left in all. */
#include <pthread.h>
#include <stdlib.h>

enum { THREADS = 4, SMALL = 100000, MID = 20000, LARGE = 2000, GROWN = 60000 };

__attribute__((noinline)) void *small(void) { return malloc(48); }
__attribute__((noinline)) void *mid(void) { return calloc(3, 1000); }
__attribute__((noinline)) void *large(void) { return malloc(100000); }
__attribute__((noinline)) void *grown(void)
{
    void *p = malloc(64);

    return realloc(p, 700);
}

static void *run(void *unused)
{
    static __thread void *all[SMALL];

    (void)unused;
    for (int i = 0; i < SMALL; i++)
        all[i] = small();
    for (int i = 0; i < SMALL; i += 2)
        free(all[i]);
    for (int i = 0; i < MID; i++) {
        void *p = mid();
        if (i % 4)
            free(p);
    }
    for (int i = 0; i < LARGE; i++) {
        void *p = large();
        if (i % 2)
            free(p);
    }
    for (int i = 0; i < GROWN; i++) {
        void *p = grown();
        if (i % 2)
            free(p);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];

    for (int i = 1; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, run, NULL))
            return 1;
    run(NULL);
    for (int i = 1; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
