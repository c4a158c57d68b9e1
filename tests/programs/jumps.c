/* jumps.c - functions that are left by longjmp, from the same stack and from a signal's, many times. Prints how often. */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>

static sigjmp_buf back;

static void jump(int sig)
{
	siglongjmp(back, sig);
}

__attribute__((noinline)) int leaf(int n)
{
	if (n % 3 == 0)
		raise(SIGUSR1);
	if (n % 3 == 1)
		siglongjmp(back, 1);
	__asm__ volatile("");
	return n;
}

__attribute__((noinline)) int deep(int depth, int n)
{
	int r = depth ? deep(depth - 1, n) : leaf(n);

	__asm__ volatile("" : "+r"(r));
	return r + 1;
}

int main(void)
{
	static char stack[1 << 16];
	stack_t own = { .ss_sp = stack, .ss_size = sizeof stack };
	struct sigaction action = { .sa_handler = jump, .sa_flags = SA_ONSTACK };
	volatile int jumped = 0, sum = 0;

	sigaltstack(&own, NULL);
	sigaction(SIGUSR1, &action, NULL);
	for (volatile int i = 0; i < 300; i++) {
		if (sigsetjmp(back, 1) == 0)
			sum += deep(20, i);
		else
			jumped++;
	}
	printf("%d %d\n", jumped, sum);
	return 0;
}
