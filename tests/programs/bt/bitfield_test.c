/* Hands fields of bits over. */
struct Foo {
	unsigned int a : 4, b : 8, c : 3, d : 1, e : 16;
};
struct Bar {
	unsigned short a : 4, b : 8, c : 3, d : 1;
	unsigned int e : 9, f : 15, g : 1, h : 2, i : 5;
};

void func(struct Foo *foo)
{
}
void func2(struct Bar *bar)
{
}

int main(void)
{
	struct Foo foo = {1, 2, 5, 0, 65535};
	struct Bar bar = {1, 217, 5, 1, 500, 31117, 1, 2, 27};
	func(&foo);
	func2(&bar);
	return 0;
}
