// Prints how many words below the stack of main are not zero: what is there before it has called anything, programs that read variables
// which they have not initialised find.
#include <stdio.h>

int main(void) {
    unsigned long here, word;
    int words = 0;
    __asm__ volatile("mov %%rsp, %0" : "=r"(here));
    for (unsigned long down = 8; down < 16384; down += 8) {
        __asm__ volatile("mov (%1), %0" : "=r"(word) : "r"(here - down));
        words += word != 0;
    }
    printf("%d\n", words);
    return 0;
}
