/* typed.c - functions of many types, to be looked at with their debug information. Calls each of them, three times compute(), and
 * prints a number that depends on all. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum color { RED, GREEN };
enum sign { NEGATIVE = -1, POSITIVE };
struct small { int a; float b; };
struct two { long a, b; };
struct large { long a[5]; };
typedef const char *name_t;

#define OPAQUE(x) __asm__ volatile("" : "+r"(x) : : "memory")

__attribute__((noinline)) int compute(int n, const char *what, char *room, unsigned short s, bool ok, enum color c, enum sign g)
{
	OPAQUE(what);
	OPAQUE(room);
	return n < 0 ? n : -5 + n + s + ok + c + g;
}

__attribute__((noinline)) long mixed(double d, struct small s, int i, struct large l, struct two t, name_t name, long double x, signed char c)
{
	OPAQUE(name);
	return i + t.a + c + l.a[0] + s.a;
}

__attribute__((noinline)) struct large gives(int n)
{
	struct large l = { { n } };

	OPAQUE(n);
	return l;
}

__attribute__((noinline)) double half(double d, int n)
{
	OPAQUE(n);
	return d / n;
}

__attribute__((noinline)) void nothing(void (*call)(int), int *p, struct two *t, uint8_t b, size_t z)
{
	OPAQUE(p);
}

__attribute__((noinline)) int many(int a, int b, int c, int d, int e, int f, int g, long h)
{
	OPAQUE(a);
	return a + b + c + d + e + f + g + h;
}

static inline __attribute__((always_inline)) int tiny(int x)
{
	return x * 3 + 1;
}

__attribute__((noinline)) int holds_tiny(int x)
{
	OPAQUE(x);
	return tiny(x);
}

int main(void)
{
	struct small s = { 1, 2 };
	struct large l = { { 1 } };
	struct two t = { 3, 4 };
	char room[8] = "room";
	long sum = mixed(1, s, 2, l, t, "x", 1, -2) + gives(3).a[0] + (long)half(3, 2) + many(1, 2, 3, 4, 5, 6, -7, 8);

	for (int n = -1; n < 2; n++)
		sum += compute(n, n < 0 ? "below" : "above", room, 7, true, GREEN, NEGATIVE);
	nothing(NULL, NULL, &t, 200, 5);
	printf("%ld %d\n", sum, holds_tiny(2));
	return 0;
}
