/* Something to set probes on: probes N waits for a line on stdin, calls worked() N times, passes the static probes lab:step (with
 * a semaphore) and lab:plain as often, and says how often it saw the semaphore raised. */
#include <stdio.h>
#include <stdlib.h>

/* A note of sys/sdt.h's layout: sizes, type 3, name; address, base, semaphore; provider, name, arguments. */
#define NOTE(name, semaphore, args, ...)                                                                   \
	__asm__ volatile("990:	nop\n"                                                                     \
			 "	.pushsection .note.stapsdt,\"\",\"note\"\n"                                \
			 "	.balign 4\n"                                                               \
			 "	.4byte 992f-991f, 994f-993f, 3\n"                                          \
			 "991:	.asciz \"stapsdt\"\n"                                                      \
			 "992:	.balign 4\n"                                                               \
			 "993:	.8byte 990b, _.stapsdt.base, " semaphore "\n"                              \
			 "	.asciz \"lab\"\n"                                                          \
			 "	.asciz \"" name "\"\n"                                                     \
			 "	.asciz \"" args "\"\n"                                                     \
			 "994:	.balign 4\n"                                                               \
			 "	.popsection\n" ::__VA_ARGS__)

__asm__(".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"
	".weak _.stapsdt.base\n"
	".hidden _.stapsdt.base\n"
	"_.stapsdt.base: .space 1\n"
	".popsection\n");

__attribute__((used, section(".probes"))) volatile unsigned short lab_step_semaphore;

__attribute__((noinline)) long worked(int i, const char *what, long n)
{
	__asm__ volatile("" ::"r"(what) : "memory");
	return i + n;
}

/* A function that is chosen when the program is loaded. */
static long only_choice(void)
{
	return 0;
}

static void *choose(void)
{
	return only_choice;
}

long chosen(void) __attribute__((ifunc("choose")));

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 0, raised = 0;
	long sum = 0;

	puts("ready");
	fflush(stdout);
	getchar();
	for (int i = 0; i < n; i++) {
		sum += worked(i, "step", 1000);
		raised += lab_step_semaphore != 0;
		NOTE("step", "lab_step_semaphore", "-4@%0 8@%1 -4@$-7", "r"(i), "r"(sum));
		NOTE("plain", "0", "-4@%0", "r"(i));
	}
	sum += chosen();
	printf("%ld %d\n", sum, raised);
	return 0;
}
