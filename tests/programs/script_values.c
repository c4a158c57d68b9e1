/* script_values [FOREVER]: calls functions with arguments of several types. */
#include <stdbool.h>
#include <unistd.h>

enum color { RED, GREEN };
struct point {
	int x;
	const char *name;
};

#define APART __attribute__((noinline, noclone))
#define KEPT __asm__ volatile("" ::: "memory")

APART long add(int n, unsigned char c, const char *s, struct point *p, enum color e, bool b, double d)
{
	KEPT;
	return n < 0 ? -1 : n + (s ? s[0] : 0) + (p ? p->x : 0) + (int)d;
}

APART int work(int n, const char *s)
{
	KEPT;
	return n * 2 + s[0];
}

int main(int argc, char **argv)
{
	struct point p = { 7, "origin" };

	do {
		for (int i = -1; i < 2; i++)
			add(i, 200, "hello", &p, GREEN, true, 1.5);
		add(5, 1, 0, 0, RED, false, 0);
		work(3, "odd");
		if (argc > 1)
			usleep(1000);
	} while (argc > 1);
	return 0;
}
