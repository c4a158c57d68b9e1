// Reads the code of one of its functions, as checksums of programs do.
#include <stdio.h>
__attribute__((noinline)) int checked(int n) { return n * 3 + 1; }
__attribute__((noinline)) int other(int n) { return checked(n) + 1; }
int main(void) {
    const volatile unsigned char *code = (const volatile unsigned char *)checked;
    unsigned sum = 0;
    for (int i = 0; i < 4; i++) sum = sum * 31 + code[i];
    printf("%u %d\n", sum, other(5));
    return 0;
}
