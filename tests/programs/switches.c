/* switches.c - two coroutines on stacks of their own, which switch in the midst of yields(). Prints a number. */
#include <stdio.h>
#include <ucontext.h>

static ucontext_t back, own[2];
static char stacks[2][1 << 16];
static int sum;

__attribute__((noinline)) int yields(int who, int i)
{
	swapcontext(&own[who], &back);
	__asm__ volatile("" : "+r"(i));
	return i + 1;
}

static void run(int who)
{
	for (int i = 0; i < 5; i++)
		sum += yields(who, i);
}

int main(void)
{
	for (int who = 0; who < 2; who++) {
		getcontext(&own[who]);
		own[who].uc_stack.ss_sp = stacks[who];
		own[who].uc_stack.ss_size = sizeof stacks[who];
		own[who].uc_link = &back;
		makecontext(&own[who], (void (*)(void))run, 1, who);
	}
	for (int turn = 0; turn < 6; turn++)
		for (int who = 0; who < 2; who++)
			swapcontext(&back, &own[who]);
	printf("%d\n", sum);
	return 0;
}
