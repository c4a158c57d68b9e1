/* Hands an array of structures over. */
#include <stdint.h>

struct T {
	uint32_t a, b[2];
};
struct W {
	uint32_t a;
	struct T t;
};
struct C {
	uint32_t a;
	void *b;
	struct W w[10];
};

void clear(struct C *c)
{
}

int main(void)
{
	struct C c = {0};
	for (int i = 0; i < 10; i++)
		c.w[i] = (struct W){100 + i, {i, {0, 100 - 2 * i}}};
	clear(&c);
	return 0;
}
