/* Hands two numbers over by their address. */
struct Foo {
	int m;
	int n;
};

void func(struct Foo *foo)
{
}

int main(void)
{
	struct Foo foo = {2, 3};
	func(&foo);
	return 0;
}
