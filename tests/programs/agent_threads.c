// Threads, 64 at a time, that end while others begin.
#include <pthread.h>
#include <stdio.h>

enum { ROUNDS = 4, MANY = 64 };
int leaf(int n) { return n * 3 + 7; }
int middle(int n) { return leaf(n) + 1; }
void *body(void *p) {
    long sum = 0;
    for (int i = 0; i < 100; i++) sum += middle(i);
    return (void *)sum;
}

int main(void) {
    long sum = 0;
    for (int r = 0; r < ROUNDS; r++) {
        pthread_t threads[MANY];
        void *result;
        for (int i = 0; i < MANY; i++) pthread_create(&threads[i], NULL, body, NULL);
        for (int i = 0; i < MANY; i++) {
            pthread_join(threads[i], &result);
            sum += (long)result;
        }
    }
    printf("%ld\n", sum);
}
