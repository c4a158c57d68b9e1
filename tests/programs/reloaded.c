/* A library that is loaded, unloaded, and loaded again. VALUE tells builds apart, and PADDING moves the function. */
#include <stdlib.h>

#ifdef PADDING
__attribute__((noinline)) int padding(int n) { return n / 7 * 3 - n % 5; }
#endif

__attribute__((noinline)) int *module_function(int n) {
    int *number = malloc(sizeof *number);
    *number = VALUE * n;
    return number;
}
