// Holds on to entries of a cache, and allocates and frees much more than that.
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void *entries[1000];
__attribute__((noinline)) static void *cache_add(int i)
{
    void *entry = malloc(1000);
    memset(entry, i, 1000);
    return entries[i] = entry;
}
__attribute__((noinline)) static void *scratch(int i)
{
    void *buffer = malloc(200000);
    memset(buffer, i, 200000);
    free(buffer);
    return buffer;
}
int main(void)
{
    for (int i = 0; i < 300; i++) {
        cache_add(i);
        for (int n = 0; n < 20; n++)
            scratch(i);
        if (i % 10 == 0)
            usleep(2000);
    }
    return entries[7] == 0;
}
