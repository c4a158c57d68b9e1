// Eight threads, each with a mutex of its own, each after that of the next one.
#include <pthread.h>
#include <stdio.h>
enum { N = 8 };
static pthread_mutex_t mutexes[N];
static pthread_barrier_t all;
static void *philosopher(void *p)
{
    long i = (long)p;
    pthread_mutex_lock(&mutexes[i]);
    pthread_barrier_wait(&all);
    pthread_mutex_lock(&mutexes[(i + 1) % N]);
    return 0;
}
int main(void)
{
    pthread_t threads[N];
    pthread_barrier_init(&all, 0, N);
    for (long i = 0; i < N; i++)
        pthread_mutex_init(&mutexes[i], 0);
    for (long i = 0; i < N; i++)
        pthread_create(&threads[i], 0, philosopher, (void *)i);
    for (long i = 0; i < N; i++)
        pthread_join(threads[i], 0);
    return 0;
}
