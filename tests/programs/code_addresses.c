// Code that is reached by an address: computed gotos, tables of distances, tables that were made by hand; where a label lies in the first
// bytes of its function. Prints what untraced runs print.
#include <stdio.h>
#define N __attribute__((noinline))

// The label a lies behind the first instruction (gcc -Os).
N static int by_table(const unsigned char *p) {
    static void *const to[] = {&&a, &&b};
    int sum = 0;
a:
    sum += p[1];
    p += 2;
    goto *to[*p];
b:
    return sum;
}
// Distances from a label, in 8 and 16 bits.
N static int by_distance(const unsigned char *p) {
    static const short to[] = {&&a - &&a, &&b - &&a};
    int sum = 0;
a:
    sum += p[1];
    p += 2;
    goto *(&&a + to[*p]);
b:
    return sum;
}
N static int by_switch(const unsigned char *p) {
    int sum = 0;
    for (;; p += 2) {
        switch (p[0]) {
        case 0: sum += p[1]; break;
        case 2: sum ^= 3; break;
        case 3: sum += 7; break;
        case 4: sum *= 3; break;
        case 5: sum -= 1; break;
        default: return sum;
        }
    }
}
// As in hand-written code: a table of 32 bits relative to itself, in read-only data; its entries lie 2 and 5 bytes behind the beginning.
__asm__(".text\n.p2align 4\n.globl by_hand\n.type by_hand,@function\nby_hand:\n.cfi_startproc\n"
        "xor %eax,%eax\n1: add $1,%eax\n2: dec %rdi\njs 3f\nmov %rdi,%rcx\nand $1,%ecx\n"
        "lea by_hand_table(%rip),%rdx\nmovslq (%rdx,%rcx,4),%rcx\nadd %rdx,%rcx\njmp *%rcx\n3: ret\n"
        ".cfi_endproc\n.size by_hand,.-by_hand\n"
        ".section .rodata\n.p2align 2\nby_hand_table: .long 1b-by_hand_table, 2b-by_hand_table\n.text\n");
extern int by_hand(long);

int main(void) {
    unsigned char bytes[64] = {0};
    for (int i = 0; i < 20; i++) bytes[2 * i + 1] = i;
    bytes[40] = 1;
    long sums[4] = {0};
    for (int i = 0; i < 1000; i++) {
        bytes[1] = i % 7;
        sums[0] += by_table(bytes);
        sums[1] += by_distance(bytes);
        sums[2] += by_switch(bytes);
        sums[3] += by_hand(i % 50);
    }
    printf("%ld %ld %ld %ld\n", sums[0], sums[1], sums[2], sums[3]);
    return 0;
}
