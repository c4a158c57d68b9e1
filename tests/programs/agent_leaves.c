// Frames that are left: by longjmp, near and far, by pthread_exit and by pthread_cancel.
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static jmp_buf back;
static int cleaned;

int leave(int n) {
    if (n % 2) longjmp(back, n);
    return n;
}
int large(int n) {
    volatile char room[300000];
    memset((void *)room, n, sizeof room);
    return leave(n) + room[n];
}
int small(int n) { return leave(n) + 1; }

int once(int n) {
    int value = setjmp(back);
    if (value) return value * 2;
    return n % 4 < 2 ? small(n) : large(n);
}

static void cleanup(void *p) { cleaned += *(int *)p; }

int depths(int n) {
    int one = 1;
    pthread_cleanup_push(cleanup, &one);
    if (n == 0) pthread_exit((void *)7);
    depths(n - 1);
    pthread_cleanup_pop(0);
    return n;
}
int waits(int n) {
    int one = 1;
    pthread_cleanup_push(cleanup, &one);
    if (n == 0)
        for (;;) pause();
    waits(n - 1);
    pthread_cleanup_pop(0);
    return n;
}
void *ends(void *p) { return (void *)(long)depths(10); }
void *is_cancelled(void *p) { return (void *)(long)waits(10); }

int main(void) {
    long sum = 0;
    for (int i = 0; i < 3000; i++) sum += once(i);
    for (int i = 0; i < 20; i++) {
        pthread_t t;
        void *result;
        pthread_create(&t, NULL, ends, NULL);
        pthread_join(t, &result);
        sum += (long)result;
        pthread_create(&t, NULL, is_cancelled, NULL);
        usleep(1000);
        pthread_cancel(t);
        pthread_join(t, &result);
        sum += result == PTHREAD_CANCELED;
    }
    printf("%ld %d\n", sum, cleaned);
}
