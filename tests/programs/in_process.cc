// Static probes and functions where it matters that a probe changes nothing: flags, the red zone and vector registers are in use, handlers of signals
// walk the stack, exceptions leave functions. Says at the end whether anything was wrong, and what has become of its counter. With `walks` as the second
// argument it goes on until a handler has walked the stack often; with `wait`, its turns begin when there is something to be read.
#include <csignal>
#include <cstdio>
#include <poll.h>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <sys/time.h>
#include <unwind.h>
#include "note.h"

extern "C" {
__attribute__((section(".probes"))) volatile unsigned short guarded_semaphore;
}

static long wrong, guarded_turns;

struct Place {
	long first, second;
	int small[4];
};

/* Arguments of all kinds: parts of registers, memory, a constant. */
__attribute__((noinline)) static void kinds(long turn, Place *place) {
	int a = -(int)turn;
	unsigned char b = (unsigned char)(200 + turn);
	short c = (short)(-300 - turn);
	NOTE("in_process", "kinds", "0",
	     "-4@%k[a] 1@%b[b] -2@%w[c] -8@$-5 8@8(%[p]) -4@16(%[p],%[x],4) -8@%[t] 8@%[s]", [a] "r"(a), [b] "q"(b), [c] "r"(c),
	     [p] "r"(place), [x] "r"(turn & 3), [t] "r"(turn), [s] "r"("a text"), "m"(*place));
}

/* The carry flag is set in front of the probe and used behind it. */
__attribute__((noinline)) static long carries(long turn) {
	long x = turn;
	__asm__ volatile("stc\n"
			 "990:	nop\n"
			 "	adcq $0, %[x]\n"
			 "	leaq 1(%[x]), %[x]\n"
			 "	.pushsection .note.stapsdt,\"\",\"note\"\n	.balign 4\n	.4byte 992f-991f, 994f-993f, 3\n"
			 "991:	.asciz \"stapsdt\"\n992:	.balign 4\n993:	.8byte 990b, _.stapsdt.base, 0\n"
			 "	.asciz \"in_process\"\n	.asciz \"carries\"\n	.asciz \"-8@%[x]\"\n994:	.balign 4\n	.popsection\n"
			 : [x] "+r"(x)::"cc");
	return x;
}

/* A leaf keeps values below its stack pointer. */
__attribute__((noinline)) static long below(long turn) {
	long x;
	__asm__ volatile("movq %[t], -8(%%rsp)\n"
			 "	movq %[t], -128(%%rsp)\n"
			 "	movq $0, %[x]\n"
			 "990:	nop\n"
			 "	addq -8(%%rsp), %[x]\n"
			 "	addq -128(%%rsp), %[x]\n"
			 "	.pushsection .note.stapsdt,\"\",\"note\"\n	.balign 4\n	.4byte 992f-991f, 994f-993f, 3\n"
			 "991:	.asciz \"stapsdt\"\n992:	.balign 4\n993:	.8byte 990b, _.stapsdt.base, 0\n"
			 "	.asciz \"in_process\"\n	.asciz \"below\"\n	.asciz \"-8@-8(%%rsp) -8@-128(%%rsp)\"\n994:	.balign 4\n	.popsection\n"
			 : [x] "=&r"(x)
			 : [t] "r"(turn)
			 : "cc", "memory");
	return x;
}

/* Vector registers are in use. */
__attribute__((noinline)) static double vectors(double a, double b) {
	double c = a * b, d = a - b, e = a + b;
	__asm__ volatile("" : "+x"(c), "+x"(d), "+x"(e));
	NOTE("in_process", "vectors", "0", "");
	__asm__ volatile("" : "+x"(c), "+x"(d), "+x"(e));
	return c + d * e;
}

__attribute__((noinline)) static void guarded(long turn) {
	if (guarded_semaphore) {
		guarded_turns++;
		NOTE("in_process", "guarded", "guarded_semaphore", "-8@%[t]", [t] "r"(turn));
	}
}

#ifdef __clang__
#define WHOLE __attribute__((noinline, used))
#else
#define WHOLE __attribute__((noipa, used))
#endif

extern "C" {
WHOLE long many(long a, int b, const char *c, unsigned char d, long e, long f, long g, short h) {
	__asm__ volatile("");
	return a + b + (long)strlen(c) + d + e + f + g + h;
}

WHOLE long recursive(long n) {
	__asm__ volatile("");
	return n < 2 ? 1 : n * recursive(n - 1);
}

WHOLE const char *named(long n) {
	__asm__ volatile("");
	return n & 1 ? "odd" : "even";
}

WHOLE long throws(long n) {
	__asm__ volatile("");
	if (n % 3 == 0) throw std::runtime_error("three");
	return n + 1;
}
}

static long caught(long n) {
	try {
		return throws(n);
	} catch (const std::runtime_error &) {
		return -1;
	}
}

int main(int argc, char **argv);

static volatile long walks;

static _Unwind_Reason_Code visit(struct _Unwind_Context *context, void *found) {
	if (_Unwind_FindEnclosingFunction((void *)_Unwind_GetIP(context)) == (void *)main) *(bool *)found = true;
	return _URC_NO_REASON;
}

static void handler(int) {
	bool found = false;
	_Unwind_Backtrace(visit, &found);
	wrong += !found;
	walks++;
}

int main(int argc, char **argv) {
	long turns = atol(argv[1]), sum = 0;
	double real = 0;
	Place place = {7, 0x123456789abcdef, {1, -2, 3, -4}};
	bool walking = argc > 2 && !strcmp(argv[2], "walks");
	if (argc > 2 && !walking) {
		pollfd in = {0, POLLIN, 0};
		while (poll(&in, 1, 1) == 0) guarded(1000);
	}
	if (walking) {
		signal(SIGALRM, handler);
		itimerval often = {{0, 300}, {0, 300}};
		setitimer(ITIMER_REAL, &often, nullptr);
	}
	for (long turn = 0; turn < turns || (walking && walks < 200); turn++) {
		long t = walking ? 5 : turn;
		kinds(t, &place);
		wrong += carries(t) != t + 2;
		wrong += below(t) != 2 * t;
		real += vectors(t, 2);
		guarded(t);
		sum += many(t, -3, named(t), 250, 5, 6, -7, -8);
		sum += recursive(t % 5);
		sum += caught(t);
	}
	itimerval never = {};
	setitimer(ITIMER_REAL, &never, nullptr);
	printf("wrong %ld guarded %ld counter %d\n", wrong, guarded_turns ? 1L : 0L, (int)guarded_semaphore);
	if (!walking) printf("sum %ld real %.3f\n", sum, real);
}
