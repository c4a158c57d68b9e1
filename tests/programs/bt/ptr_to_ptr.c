/* Hands the address of an address over. */
struct Foo {
	int a;
	char b[10];
};

void function(struct Foo **foo)
{
}

int main(void)
{
	struct Foo foo = {123, "hello"}, *at = &foo;
	function(&at);
	return 0;
}
