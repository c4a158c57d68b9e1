// Two threads that compute: hash() is the hot function, and load() its main caller.
#define _GNU_SOURCE
#include <pthread.h>
static volatile unsigned long x;
__attribute__((noinline)) static void hash(int n)
{
    for (int i = 0; i < n * 1000; i++)
        x = x * 31 + i;
}
__attribute__((noinline)) static void load(void)
{
    hash(60);
    x++;
}
__attribute__((noinline)) static void serve(void)
{
    hash(20);
    x++;
}
static void *work(void *name)
{
    pthread_setname_np(pthread_self(), name);
    for (int i = 0; i < 1500; i++) {
        load();
        serve();
    }
    return 0;
}
int main(void)
{
    pthread_t a, b;
    pthread_create(&a, 0, work, "worker-1");
    pthread_create(&b, 0, work, "worker-2");
    pthread_join(a, 0);
    pthread_join(b, 0);
    return 0;
}
