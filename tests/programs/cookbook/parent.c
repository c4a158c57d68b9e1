// Has three children, of which the second one fails.
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
    for (int i = 0; i < 3; i++)
        if (fork() == 0)
            _exit(i == 1 ? 3 : 0);
    for (int i = 0; i < 3; i++)
        wait(0);
    return 0;
}
