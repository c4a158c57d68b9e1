// A function with two names, one smaller than a jump instruction, an IFUNC, and a main function that can be a loop.
#include <unistd.h>

__attribute__((naked)) void tiny(void) { __asm__("nop\nret"); }
int __plain(int x) {
    __asm__ volatile("");
    return x * 3 + 1;
}
int plain(int x) __attribute__((alias("__plain")));

static int one(void) { return 1; }
static int (*resolve(void))(void) { return one; }
int chosen(void) __attribute__((ifunc("resolve")));

int main(int argc, char **argv) {
    tiny();
    int sum = plain(argc) * chosen();
    while (argc > 1) usleep(1000);
    return sum == 4 ? 0 : 1;
}
