// Calls that exceptions leave: with destructors on the way, caught deeper than where the next call is made, thrown again, and in a
// thread, which pthread_exit leaves too. Prints how many were caught.
#include <cstdio>
#include <pthread.h>

static volatile int calls;

#define OWN extern "C" __attribute__((noinline, noipa))
OWN void thrower(int n) { calls++; if (n % 3 == 0) throw n; }
OWN void deep(int n, int depth) { calls++; if (depth > 0) deep(n, depth - 1); else thrower(n); calls++; }
OWN void cleaned() { calls++; }
struct Cleanup { ~Cleanup() { cleaned(); } };
OWN void with_cleanup(int n) { Cleanup cleanup; deep(n, 2); calls++; }
OWN int catches(int n) { try { with_cleanup(n); } catch (int) { return 1; } return 0; }
OWN void throws_again(int n) { try { deep(n, 1); } catch (int m) { throw long(m); } calls++; }
OWN int catches_again(int n) { try { throws_again(n); } catch (long) { return 1; } return 0; }
OWN void after() { calls++; }
// Its frame is lower than that of what was left before.
OWN void below() { char room[400]; asm volatile("" : : "r"(room) : "memory"); after(); calls++; }
OWN int all(int n)
{
    int caught = catches(n);
    below();
    caught += catches_again(n);
    below();
    after();
    return caught;
}
OWN void *work(void *caught)
{
    for (int n = 0; n < 6; n++)
        *(int *)caught += all(n);
    return nullptr;
}
OWN void ends() { Cleanup cleanup; pthread_exit(nullptr); }
OWN void *ends_early(void *) { ends(); return nullptr; }

int main()
{
    int caught = 0;
    work(&caught);
    pthread_t thread;
    pthread_create(&thread, nullptr, work, &caught);
    pthread_join(thread, nullptr);
    pthread_create(&thread, nullptr, ends_early, nullptr);
    pthread_join(thread, nullptr);
    printf("%d\n", caught);
}
