/* Waits in the innermost of three functions. */
#include <unistd.h>

__attribute__((noinline)) int inner(int n) { return pause() + n; }
__attribute__((noinline)) int outer(int n) { return inner(n) + 1; }
int main(void) { return outer(1); }
