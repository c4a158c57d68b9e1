/* A program of 32 bits, without a C library: f, g, and a getppid(2) in it; then it computes for a while, and exits with 7. */
static volatile int sink;

static int call(int nr, int a)
{
	int result;
	__asm__ volatile("int $0x80" : "=a"(result) : "a"(nr), "b"(a) : "memory");
	return result;
}

__attribute__((noinline)) int g(int n)
{
	sink += call(64, 0);
	return n + sink;
}

__attribute__((noinline)) int f(int n)
{
	return g(n + 1) + 1;
}

void _start(void)
{
	for (int i = 0; i < 100000000; i++)
		sink += i;
	f(1);
	call(1, 7);
	__builtin_unreachable();
}
