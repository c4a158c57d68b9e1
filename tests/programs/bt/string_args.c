/* Hands a text over by its address. */
struct Foo {
	char s[16];
};

void print(struct Foo *foo)
{
}

int main(void)
{
	struct Foo foo = {"hello"};
	print(&foo);
	return 0;
}
