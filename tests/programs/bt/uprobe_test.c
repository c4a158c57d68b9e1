/* Calls two functions, and once more a second later, for who finds it running. */
#include <unistd.h>

int GLOBAL_A = 0x55555555;
int GLOBAL_B = 0x88888888;
int GLOBAL_C = 0x33333333;

struct Foo {
	int a;
	char b[10];
	int c[3];
};

int function1(int *n, char c)
{
	return *n + c;
}
int function2(struct Foo *foo1, struct Foo *foo2)
{
	return foo1->a + foo2->a;
}

int main(int argc, char **argv)
{
	int n = 13;
	struct Foo foo1 = {123, "hello", {1, 2, 3}}, foo2 = {456, "world", {4, 5, 6}};
	for (int i = 0; i < 2; i++) {
		function1(&n, 'x');
		function2(&foo1, &foo2);
		if (!i)
			usleep(1000000);
	}
	return 0;
}
