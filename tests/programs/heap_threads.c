// What programs with threads do with the heap.
#include "heap.h"
#include <pthread.h>

enum { THREADS = 8, ROUNDS = 500, RING = 64 };

// Blocks go from threads that allocate to threads that free.
static void *ring[RING];
static size_t taken, put;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

ALONE static void puts_in(size_t size) {
    void *block = MALLOC(size);
    pthread_mutex_lock(&lock);
    while (put - taken == RING) pthread_cond_wait(&changed, &lock);
    ring[put++ % RING] = block;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}
ALONE static void takes_out(void) {
    pthread_mutex_lock(&lock);
    while (put == taken) pthread_cond_wait(&changed, &lock);
    void *block = ring[taken++ % RING];
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    FREE(block);
}
ALONE static void leaks(size_t size) {
    MALLOC(size);
    KEEP_CALL;
}
static void *allocating(void *n) {
    for (size_t i = 0; i < ROUNDS; i++) puts_in(i % 100 + (size_t)n);
    leaks((size_t)n);
    return NULL;
}
static void *freeing(void *n) {
    (void)n;
    for (size_t i = 0; i < ROUNDS; i++) takes_out();
    return NULL;
}
static void start(pthread_t *threads, size_t n, void *(*run)(void *)) {
    for (size_t i = 0; i < n; i++)
        if (pthread_create(&threads[i], NULL, run, (void *)(i + 1))) fail("no thread\n");
}
static void end(pthread_t *threads, size_t n) {
    for (size_t i = 0; i < n; i++) pthread_join(threads[i], NULL);
}
ALONE static void crossing(void) {
    pthread_t all[THREADS];
    start(all, THREADS / 2, allocating);
    start(all + THREADS / 2, THREADS / 2, freeing);
    end(all, THREADS);
}

// All threads use all functions of the heap, and exchange blocks with each other.
static void *shared[RING];
ALONE static void *storms_one(size_t i) {
    switch (i % 4) {
    case 0: return MALLOC(i % 1000);
    case 1: return CALLOC(2, i % 500);
    case 2: return TAKE(aligned_alloc(64, 64 * (i % 9 + 1)), 64 * (i % 9 + 1));
    default: return REALLOC(MALLOC(10), i % 3000 + 1);
    }
}
static void *storming(void *n) {
    for (size_t i = 0; i < 4 * ROUNDS; i++) {
        void *block = storms_one(i + (size_t)n);
        // In order, so that what is left over does not depend on who was first.
        void *other = __atomic_exchange_n(&shared[i % RING], block, __ATOMIC_ACQ_REL);
        if (i % 16 == 3 && other) other = REALLOC(other, 7);
        FREE(other);
    }
    return NULL;
}
ALONE static void storm(void) {
    pthread_t all[THREADS];
    start(all, THREADS, storming);
    end(all, THREADS);
    for (int i = 0; i < RING; i++) FREE(shared[i]);
    leaks(3);
}

// Threads that end: those of their destructors allocate and free too.
static pthread_key_t key;
ALONE static void in_destructor(void *block) {
    FREE(block);
    leaks(31);
}
static void *short_lived(void *n) {
    pthread_setspecific(key, MALLOC((size_t)n));
    leaks(1);
    return NULL;
}
ALONE static void short_lives(void) {
    pthread_key_create(&key, in_destructor);
    for (int round = 0; round < 25; round++) {
        pthread_t all[THREADS];
        start(all, THREADS, short_lived);
        end(all, THREADS);
    }
}

// A thread that is cancelled while it holds a block, which its cleanup frees; and one that leaves by pthread_exit.
static void cleanup(void *block) { FREE(block); }
static void *cancelled(void *n) {
    void *block = MALLOC(200 + (size_t)n);
    pthread_cleanup_push(cleanup, block);
    leaks(2);
    for (;;) pause();
    pthread_cleanup_pop(1);
    return NULL;
}
static void *leaving(void *n) {
    leaks((size_t)n);
    pthread_exit(MALLOC(99));
}
ALONE static void cancellations(void) {
    for (int round = 0; round < 5; round++) {
        pthread_t all[2];
        start(all, 1, cancelled);
        // It has begun when it has leaked.
        while (__atomic_load_n(&owner_of("leaks")->blocks, __ATOMIC_RELAXED) < round * 2 + 1) usleep(100);
        pthread_cancel(all[0]);
        end(all, 1);
        start(all, 1, leaving);
        void *left;
        pthread_join(all[0], &left);
        FREE(left);
    }
}

static const struct scenario all[] = {
    {"crossing", crossing},
    {"storm", storm},
    {"short_lives", short_lives},
    {"cancellations", cancellations},
    {NULL, NULL},
};

int main(int argc, char **argv) { return run_scenario(all, argc, argv); }
