/* odd_code.c - functions with bytes that are no code: data that is jumped over, a table of jumps, padding; one without a size; and
 * symbols and a static probe's notes that lead into the midst of instructions; a part that is jumped to; instructions of AVX (called where the processor has
 * them). Calls all of them and prints a sum. */
#include <stdio.h>

#define FUNCTION(name) ".globl " #name "\n.type " #name ", @function\n" #name ":\n"
#define END(name) ".size " #name ", . - " #name "\n"

/* jumps over four bytes of data, which a linear look takes for the start of an instruction */
__asm__(".text\n" FUNCTION(over)
	"	jmp 1f\n"
	"	.byte 0x48, 0xb8, 0x01, 0x02\n"
	"1:	movl $5, %eax\n"
	"	ret\n" END(over));

/* goes on by a table that lies behind its code, whose entries look like instructions */
__asm__(FUNCTION(by_table)
	"	leaq 3f(%rip), %rax\n"
	"	movslq (%rax,%rdi,4), %rdx\n"
	"	addq %rdx, %rax\n"
	"	jmp *%rax\n"
	"1:	movl $10, %eax\n"
	"	ret\n"
	"2:	movl $20, %eax\n"
	"	ret\n"
	"	.balign 4\n"
	"3:	.long 1b - 3b, 2b - 3b\n" END(by_table));

/* a switch as compilers make it: the table is elsewhere */
__attribute__((noinline)) int by_switch(int n)
{
	switch (n) {
	case 0: return 3;
	case 1: __asm__ volatile(""); return 14;
	case 2: __asm__ volatile("nop"); return 15;
	case 3: __asm__ volatile("nop; nop"); return 92;
	case 4: __asm__ volatile("nop; nop; nop"); return 65;
	case 5: __asm__ volatile("nop; nop; nop; nop"); return 35;
	}
	return 0;
}

/* nobody knows where it ends */
__asm__(".globl unsized\n.type unsized, @function\nunsized:\n	movl $7, %eax\n	ret\n	.balign 16, 0\n");

/* what the others lie about */
__asm__(FUNCTION(honest)
	"	movabsq $0x1122334455667788, %rax\n"
	"	movl $1, %eax\n"
	"	ret\n" END(honest)
	".globl lying\n.type lying, @function\n.set lying, honest + 3\n.size lying, 4\n"
	".globl second_entry\n.type second_entry, @function\n.set second_entry, honest + 10\n.size second_entry, 6\n"
	".section .note.stapsdt,\"\",\"note\"\n.balign 4\n"
	".4byte 992f-991f, 994f-993f, 3\n991: .asciz \"stapsdt\"\n992: .balign 4\n"
	"993: .8byte honest + 4, 0, 0\n.asciz \"odd\"\n.asciz \"inside\"\n.asciz \"\"\n994: .balign 4\n"
	".4byte 992f-991f, 994f-993f, 3\n991: .asciz \"stapsdt\"\n992: .balign 4\n"
	"993: .8byte honest + 10, 0, 0\n.asciz \"odd\"\n.asciz \"start\"\n.asciz \"\"\n994: .balign 4\n"
	".text\n");

/* goes on in a part of its own, as compilers split off what is hardly ever reached; a number lies where a return address would */
__asm__(FUNCTION(whole)
	"	.cfi_startproc\n"
	"	pushq $42\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	jmp whole.cold\n"
	"	.cfi_endproc\n" END(whole)
	".type whole.cold, @function\nwhole.cold:\n"
	"	.cfi_startproc\n"
	"	.cfi_def_cfa_offset 16\n"
	"	popq %rax\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	ret\n"
	"	.cfi_endproc\n" END(whole.cold));

/* instructions that Linux takes for others where a breakpoint is on them: jp, ja */
__asm__(FUNCTION(avx_or)
	"	vmovd %edi, %xmm0\n"
	"	vpxor %xmm1, %xmm1, %xmm1\n"
	"	vpor %xmm0, %xmm1, %xmm1\n"
	"	vmovd %xmm1, %eax\n"
	"	ret\n" END(avx_or)
	FUNCTION(avx_first)
	"	vpcmpeqb %xmm1, %xmm1, %xmm1\n"
	"	vmovd %xmm1, %eax\n"
	"	ret\n" END(avx_first));

int over(void), by_table(long), unsized(void), honest(void), whole(void), avx_or(int), avx_first(void);

int main(void)
{
	int sum = over() + by_table(0) + by_table(1) + unsized() + honest() + whole();

	for (int n = 0; n < 6; n++)
		sum += by_switch(n);
	if (__builtin_cpu_supports("avx"))
		sum += avx_or(1000) + 10000 * avx_first();
	printf("%d\n", sum);
	return 0;
}
