/* Calls that longjmp and its like leave: over large frames, out of recursion, out of a handler, and by way of what checks the jump.
   Prints how many jumps there were. */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>

static jmp_buf place;
static sigjmp_buf outside;
static volatile int calls;

#define OWN __attribute__((noinline, noipa))
OWN void jumper(int n) { calls++; if (n % 2) longjmp(place, n); }
OWN void large(int n) { char room[100000]; __asm__ volatile("" : : "r"(room) : "memory"); jumper(n); calls++; }
OWN void deep(int n, int depth) { calls++; if (depth > 0) deep(n, depth - 1); else large(n); calls++; }
OWN int sets(int n) { if (setjmp(place)) return 1; deep(n, 3); return 0; }
OWN void bare(int n) { calls++; if (n % 2) _longjmp(place, 1); }
OWN int sets_bare(int n) { if (_setjmp(place)) return 1; bare(n); return 0; }
OWN void in_handler(void) { calls++; siglongjmp(outside, 1); }
OWN void handler(int signal) { (void)signal; in_handler(); calls++; }
OWN void raises(void) { raise(SIGUSR1); calls++; }
OWN int sets_outside(void) { if (sigsetjmp(outside, 1)) return 1; raises(); return 0; }
OWN void after(void) { calls++; }
OWN void below(void) { char room[400]; __asm__ volatile("" : : "r"(room) : "memory"); after(); calls++; }
OWN int all(int n)
{
    int jumps = sets(n);
    below();
    jumps += sets_bare(n);
    below();
    jumps += sets_outside();
    below();
    after();
    return jumps;
}

int main(void)
{
    signal(SIGUSR1, handler);
    int jumps = 0;
    for (int n = 0; n < 6; n++)
        jumps += all(n);
    printf("%d\n", jumps);
}
