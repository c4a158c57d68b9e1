// Calls, allocations, and a child that executes what its first argument names: for builds with sanitizers.
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) long work(long n) {
    long *block = malloc(n * sizeof *block), sum = 0;
    for (long i = 0; i < n; i++) block[i] = i;
    for (long i = 0; i < n; i++) sum += block[i];
    free(block);
    return sum;
}
int main(int argc, char **argv) {
    long sum = 0;
    for (long i = 1; i < 100; i++) sum += work(i);
    printf("%ld\n", sum);
    fflush(stdout);
    if (argc > 1) {
        int status = 1;
        if (fork() == 0) {
            execv(argv[1], argv + 1);
            _exit(9);
        }
        wait(&status);
        return status != 0;
    }
    return 0;
}
