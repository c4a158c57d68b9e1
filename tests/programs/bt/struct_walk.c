/* Hands ten structures over, and how many there are. */
#include <stdint.h>

struct C {
	uint32_t a;
	uint64_t b;
};

void clear(struct C *c, int n)
{
}

int main(void)
{
	struct C c[10];
	for (int i = 0; i < 10; i++)
		c[i] = (struct C){i, 100};
	clear(c, 10);
	return 0;
}
