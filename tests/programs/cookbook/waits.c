// Waits for data from a pipe that its child does not write.
#include <stdio.h>
#include <sys/prctl.h>
#include <signal.h>
#include <unistd.h>
__attribute__((noinline)) static int receive(int fd)
{
    char byte;
    int n = (int)read(fd, &byte, 1);
    return n + 1;
}
int main(void)
{
    int p[2];
    pipe(p);
    if (fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    close(p[1]);
    return receive(p[0]);
}
