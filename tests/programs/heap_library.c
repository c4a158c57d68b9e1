// A library whose blocks outlive its code.
#include <stdlib.h>

__attribute__((noipa)) void *library_allocates(size_t size) {
    void *block = malloc(size);
    __asm__ volatile("" ::: "memory");
    return block;
}
