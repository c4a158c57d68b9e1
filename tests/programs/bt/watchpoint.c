/* Writes to a known address. */
#include <stdint.h>
#include <sys/mman.h>

int main(void)
{
	volatile uint64_t *at = mmap((void *)0x10000000, 4096, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (at != (void *)0x10000000)
		return 1;
	for (int i = 0; i < 10; i++)
		at[0] = i;
	return 0;
}
