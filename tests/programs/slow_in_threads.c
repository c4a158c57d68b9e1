/* Calls that take 40 ms, each the first of its thread, in threads that begin one after the other; and many short ones among them. */
#include <pthread.h>
#include <time.h>

#define OWN __attribute__((noinline, noipa))
static volatile int calls;
OWN void brief(void) { calls++; }
OWN void slow(long ms)
{
    struct timespec time = {.tv_nsec = ms * 1000000};
    for (int n = 0; n < 100; n++)
        brief();
    nanosleep(&time, NULL);
    calls++;
}
OWN void outer(void) { slow(40); brief(); calls++; }
OWN void *work(void *unused) { outer(); return unused; }

int main(void)
{
    pthread_t thread[4];
    for (int n = 0; n < 4; n++) {
        pthread_create(&thread[n], NULL, work, NULL);
        slow(5);
    }
    for (int n = 0; n < 4; n++)
        pthread_join(thread[n], NULL);
    return 0;
}
