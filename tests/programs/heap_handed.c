// Sixteen threads that free what others have allocated, again and again the same few addresses.
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

static _Atomic(void *) places[8];

static void *work(void *seed) {
    unsigned random = (long)seed;
    for (int i = 0; i < 4000; i++) {
        random = random * 1103515245 + 12345;
        free(atomic_exchange(&places[random >> 29], malloc(24)));
    }
    return 0;
}

int main(void) {
    pthread_t threads[16];
    for (long i = 0; i < 16; i++) pthread_create(&threads[i], 0, work, (void *)i);
    for (int i = 0; i < 16; i++) pthread_join(threads[i], 0);
    for (int i = 0; i < 8; i++) free(places[i]);
    return 0;
}
