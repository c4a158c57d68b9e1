// Serves orders, 20 or as many as its argument says: each asks the store, which takes its time, and is written to a log. Every fifth order is slow.
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
__attribute__((noinline)) static void ask_the_store(int ms)
{
    struct timespec t = { 0, ms * 1000000L };
    nanosleep(&t, 0);
}
__attribute__((noinline)) static int write_log(int fd)
{
    return (int)write(fd, "order\n", 6);
}
__attribute__((noinline)) static int order(int fd, int n)
{
    ask_the_store(n % 5 == 4 ? 30 : 2);
    return write_log(fd);
}
int main(int argc, char **argv)
{
    int orders = argc > 1 ? atoi(argv[1]) : 20;
    int fd = open("shop.log", O_WRONLY | O_CREAT | O_TRUNC, 0600), sum = 0;
    for (int n = 0; n < orders; n++)
        sum += order(fd, n);
    close(fd);
    return sum != 6 * orders;
}
