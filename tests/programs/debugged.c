// Says which process it is; calls a function as often as its argument says, once a line has come from its standard input, and prints how
// often that was.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int calls;
__attribute__((noinline)) void called(void)
{
    calls++;
}
int main(int argc, char **argv)
{
    printf("ready %d\n", getpid());
    fflush(stdout);
    if (getchar() != '\n' || argc < 2)
        return 1;
    for (int n = atoi(argv[1]); n > 0; n--)
        called();
    printf("%d\n", calls);
    return 0;
}
