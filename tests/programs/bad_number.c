/* bad_number.c - system calls that do not exist.
 * Certain calls: syscall(9999), syscall(-1), syscall(0x7fffffff), each with the arguments 1 to 6, each =
 * -1 ENOSYS. Exits with 0 when these are the results. */
#define _GNU_SOURCE
#include <errno.h>
#include <unistd.h>

int main(void)
{
    int wrong = 0;
    wrong += syscall(9999L, 1, 2, 3, 4, 5, 6) != -1 || errno != ENOSYS;
    wrong += syscall(-1L, 1, 2, 3, 4, 5, 6) != -1 || errno != ENOSYS;
    wrong += syscall(0x7fffffffL, 1, 2, 3, 4, 5, 6) != -1 || errno != ENOSYS;
    return wrong;
}
