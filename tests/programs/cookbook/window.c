// A window: the main loop handles events, of which each takes 2 ms and is remembered, and a thread draws, which only the main thread may. Ends
// after a minute.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
static void *events[30000];
__attribute__((noinline, section("ui_code"))) static int draw(int n)
{
    struct timespec t = { 0, 1000000 };
    nanosleep(&t, 0);
    return n + 1;
}
__attribute__((noinline)) static void remember(int n)
{
    events[n] = malloc(1000);
}
__attribute__((noinline)) static int handle(int n)
{
    struct timespec t = { 0, 2000000 };
    nanosleep(&t, 0);
    remember(n);
    return n + 1;
}
__attribute__((noinline)) static int run_events(int n)
{
    for (int i = 0; i < 10; i++)
        n = handle(n);
    return n;
}
static void *render(void *unused)
{
    pthread_setname_np(pthread_self(), "render-1");
    for (int n = 0;; n = draw(n))
        ;
    return unused;
}
int main(void)
{
    pthread_t thread;
    pthread_create(&thread, 0, render, 0);
    int n = 0;
    for (int i = 0; i < 3000; i++)
        n = run_events(n);
    return n != 30000 || !events[7];
}
