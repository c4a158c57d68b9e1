// Functions that begin in all the ways that matter to who puts something over their first bytes. Each is called until standard input ends;
// then the program prints how often, and a sum.
#include "note.h"
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#define FUNCTION(name, code) \
    __asm__(".text\n.p2align 4\n.globl " #name "\n.type " #name ",@function\n" #name ":\n.cfi_startproc\n" code \
            "\n.cfi_endproc\n.size " #name ",.-" #name "\n"); \
    long name(long, long)
FUNCTION(f_push, "push %rbx\n.cfi_adjust_cfa_offset 8\nmov %rdi,%rbx\nlea (%rbx,%rsi),%rax\npop %rbx\n.cfi_adjust_cfa_offset -8\nret");
FUNCTION(f_push_twice, "push %r12\npush %rbx\nmov %rdi,%rbx\nmov %rsi,%r12\nlea 1(%rbx,%r12),%rax\npop %rbx\npop %r12\nret");
FUNCTION(f_sub, "sub $24,%rsp\n.cfi_adjust_cfa_offset 24\nmov %rdi,8(%rsp)\nmov 8(%rsp),%rax\nadd %rsi,%rax\nadd $24,%rsp\nret");
FUNCTION(f_sub_far, "sub $0x1128,%rsp\nmov %rdi,8(%rsp)\nmov 8(%rsp),%rax\nadd %rsi,%rax\nadd $0x1128,%rsp\nret");
FUNCTION(f_mov, "mov %rdi,%rax\nadd %rsi,%rax\nadd $2,%rax\nret");
FUNCTION(f_xor, "xor %eax,%eax\nadd %rdi,%rax\nadd %rsi,%rax\nret");
FUNCTION(f_lea, "lea 8(%rsp),%r10\nmov %rdi,%rax\nadd %rsi,%rax\nlea -8(%r10),%r10\nret");
FUNCTION(f_test, "test %rdi,%rdi\nje 1f\nlea (%rdi,%rsi),%rax\nret\n1: mov %rsi,%rax\nret");
FUNCTION(f_load, "mov f_word(%rip),%eax\nadd %rdi,%rax\nadd %rsi,%rax\nret");
FUNCTION(f_endbr, "endbr64\nmov %rdi,%rax\nadd %rsi,%rax\nret");
FUNCTION(f_argument, "mov $5,%edx\nlea (%rdi,%rsi),%rax\nadd %rdx,%rax\nret");
// No instruction of these can stay: they change what they read, or memory.
FUNCTION(f_adds, "add $1,%rdi\nlea (%rdi,%rsi),%rax\nret");
FUNCTION(f_stores, "mov %rdi,-16(%rsp)\nmov -16(%rsp),%rax\nadd %rsi,%rax\nret");
long f_word = 7;
// Static probes in first bytes: behind what can stay, as the first instruction, behind what cannot stay.
#define PROBE(name) "\n" NOTE_TEXT("first", name, "0", "8@%rdi")
FUNCTION(s_behind, "push %rbx\n.cfi_adjust_cfa_offset 8\nmov %rdi,%rbx" PROBE("behind") "lea (%rbx,%rsi),%rax\npop %rbx\n.cfi_adjust_cfa_offset -8\nret");
FUNCTION(s_first, PROBE("first") "mov %rdi,%rax\nadd %rsi,%rax\nret");
FUNCTION(s_moved, "sub $1,%rdi" PROBE("moved") "lea 1(%rdi,%rsi),%rax\nret");

int main(void) {
    static long (*const all[])(long, long) = {f_push, f_push_twice, f_sub, f_sub_far, f_mov, f_xor, f_lea,
                                              f_test, f_load,       f_endbr, f_argument, f_adds, f_stores, s_behind, s_first, s_moved};
    const long functions = sizeof all / sizeof *all;
    struct pollfd input = {.fd = 0, .events = POLLIN};
    long rounds = 0, sum = 0, wrong = 0;
    do {
        for (long i = 0; i < functions; i++)
            sum += all[i](rounds, i);
        void *volatile block = malloc(100);
        free(block);
        rounds++;
    } while (!poll(&input, 1, rounds < 100 ? 0 : 1));
    // Each adds its arguments, and some a constant.
    wrong = sum - (functions * rounds * (rounds - 1) / 2 + rounds * (functions * (functions - 1) / 2 + 1 + 2 + 7 + 5 + 1));
    printf("%ld\n", rounds);
    return wrong != 0;
}
