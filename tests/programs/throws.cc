// throws.cc - an exception that leaves a function without a table of its own (passes), three calls of it; and functions that it
// cannot leave: alone() calls nothing, catches() lands it. Prints a number.
#include <cstdio>
#include <stdexcept>

extern "C" {

__attribute__((noinline)) int thrower(int i)
{
	if (i == 1)
		throw std::runtime_error("one");
	return i;
}

__attribute__((noinline)) int passes(int i)
{
	return thrower(i) + 1;
}

__attribute__((noinline)) int alone(int i)
{
	__asm__ volatile("" : "+r"(i));
	return i * 3;
}

}

int main()
{
	int sum = 0;

	for (int i = 0; i < 3; i++) {
		try {
			sum += passes(i) + alone(i);
		} catch (std::exception &) {
			sum += 100;
		}
	}
	printf("%d\n", sum);
	return 0;
}
