/* Touches so many pages (20000) and ends: they are freed when it is already on its way out. */
#include <stdlib.h>
#include <sys/mman.h>

int main(int argc, char **argv) {
	long n = argc > 1 ? atol(argv[1]) : 20000;
	char *p = mmap(0, n * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return 1;
	madvise(p, n * 4096, MADV_NOHUGEPAGE);
	for (long i = 0; i < n; i++)
		p[i * 4096] = 1;
	return 0;
}
