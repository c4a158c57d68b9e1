/* Hands a structure over whose bytes and numbers count up and down. */
#include <stdint.h>

struct Many {
	const char *a;
	char b[4];
	uint8_t c[4];
	int d[4];
	uint16_t e[4];
	uint64_t f[4];
};

void func(struct Many *many)
{
}

int main(void)
{
	char bytes[] = {9, 8, 7, 6};
	struct Many many = {bytes, {5, 4, 3, 2}, {1, 2, 3, 4}, {5, 6, 7, 8}, {9, 10, 11, 12}, {13, 14, 15, 16}};
	func(&many);
	return 0;
}
