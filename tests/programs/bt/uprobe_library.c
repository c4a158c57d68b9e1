/* Reads through the C library. */
#include <stdio.h>

int main(void)
{
	char bytes[10];
	FILE *f = fopen("/dev/zero", "r");
	return !f || fread(bytes, 1, sizeof bytes, f) != sizeof bytes;
}
