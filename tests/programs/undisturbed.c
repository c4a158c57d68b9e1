// undisturbed.c - a program whose registers, signal mask and calls stay what they are, whatever happens to it.
// Argument "busy": it computes until SIGTERM comes. "reads": it waits for a byte of its standard input.
// Exit status: 0: all was right; else a bit for each thing that was not: 1 general registers, 2 vector registers, 4 the mask, 8 a call.
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t over;
static int wrong;
static void end(int signal) { (void)signal; over = 1; }

static void check_mask(void) {
    sigset_t now, none;
    sigemptyset(&none);
    if (sigprocmask(SIG_BLOCK, NULL, &now) || memcmp(&now, &none, 8)) wrong |= 4;
}

// Registers keep what they have for some thousands of instructions.
static void registers(void) {
    unsigned long bad, vector[4] __attribute__((aligned(32))) = { 11, 12, 13, 14 }, after[4] __attribute__((aligned(32)));
#define GENERAL \
    "mov $101, %%rbx; mov $102, %%r12; mov $103, %%r13; mov $104, %%r14; mov $105, %%r15; mov $106, %%r8; mov $107, %%rdi\n" \
    "mov $5000, %%ecx\n1: dec %%ecx; jnz 1b\n" \
    "xor %0, %0\n" \
    "sub $101, %%rbx; or %%rbx, %0; sub $102, %%r12; or %%r12, %0; sub $103, %%r13; or %%r13, %0; sub $104, %%r14; or %%r14, %0\n" \
    "sub $105, %%r15; or %%r15, %0; sub $106, %%r8; or %%r8, %0; sub $107, %%rdi; or %%rdi, %0\n"
#define OTHERS "rbx", "r12", "r13", "r14", "r15", "r8", "rdi", "rcx", "xmm7", "cc", "memory"
    if (__builtin_cpu_supports("avx"))
        __asm__ volatile("vmovdqa (%1), %%ymm7\n" GENERAL "vmovdqa %%ymm7, (%2); vzeroupper" : "=&a"(bad) : "d"(vector), "S"(after) : OTHERS);
    else {
        memcpy(after, vector, sizeof after);
        __asm__ volatile("movdqa (%1), %%xmm7\n" GENERAL "movdqa %%xmm7, (%2)" : "=&a"(bad) : "d"(vector), "S"(after) : OTHERS);
    }
    if (bad) wrong |= 1;
    if (memcmp(vector, after, sizeof vector)) wrong |= 2;
}

int main(int argc, char **argv) {
    char byte = 0;
    signal(SIGTERM, end);
    puts("begun");
    fflush(stdout);
    if (argc > 1 && strcmp(argv[1], "reads") == 0) {
        if (read(0, &byte, 1) != 1 || byte != 'x') wrong |= 8;
        registers();
        check_mask();
        return wrong;
    }
    while (!over) {
        registers();
        if (getppid() < 0) wrong |= 8;
        check_mask();
    }
    return wrong;
}
