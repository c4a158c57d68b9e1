// Coroutines that switch in the middle of calls, on stacks that lie next to each other, above and below the thread's own.
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

enum { MANY = 8, STACK = 65536 };
static ucontext_t main_context, contexts[MANY];
static char stacks[MANY][STACK] __attribute__((aligned(16)));
static long sum;

void yield(int self) { swapcontext(&contexts[self], &contexts[(self + 1) % MANY]); }

int nested(int self, int depth) {
    if (depth == 0) {
        yield(self);
        return 1;
    }
    int value = nested(self, depth - 1);
    if (depth % 2) yield(self);
    return value + 1;
}

void body(int self) {
    for (int i = 0; i < 250; i++) {
        sum += nested(self, 1 + (i + self) % 5) * (self + 1);
    }
    for (;;) {
        if (self == MANY - 1) setcontext(&main_context);
        yield(self);
    }
}

int main(void) {
    for (int i = 0; i < MANY; i++) {
        getcontext(&contexts[i]);
        contexts[i].uc_stack.ss_sp = stacks[i];
        contexts[i].uc_stack.ss_size = STACK;
        contexts[i].uc_link = &main_context;
        makecontext(&contexts[i], (void (*)(void))body, 1, i);
    }
    swapcontext(&main_context, &contexts[0]);
    printf("%ld\n", sum);
}
