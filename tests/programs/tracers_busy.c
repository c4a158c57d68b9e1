// 16 threads and a timer that call functions until standard input ends; then the sum of what they return, which must be 0.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <unistd.h>
static volatile int stop;
static volatile long ticks;
__attribute__((noinline)) long fib(long n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
__attribute__((noinline)) long twice(long n) { return fib(n) + fib(n); }
__attribute__((noinline)) void tick(void) { ticks++; }
static void on_alarm(int s) { tick(); twice(3); }
static void *body(void *p) {
    long wrong = 0;
    while (!stop) wrong += twice(12) != 288;
    return (void *)wrong;
}
int main(void) {
    pthread_t t[16];
    struct itimerval every = {{0, 100}, {0, 100}};
    signal(SIGALRM, on_alarm);
    setitimer(ITIMER_REAL, &every, 0);
    for (int i = 0; i < 16; i++) pthread_create(&t[i], 0, body, 0);
    puts("ready");
    fflush(stdout);
    char c;
    while (read(0, &c, 1) != 0) {}
    stop = 1;
    long sum = 0;
    for (int i = 0; i < 16; i++) {
        void *wrong;
        pthread_join(t[i], &wrong);
        sum += (long)wrong;
    }
    printf("%ld\n", sum);
    return 0;
}
