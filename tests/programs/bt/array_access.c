/* Hands arrays over by their addresses. */
struct A {
	int x[4];
};
struct B {
	int y[2][2];
};
struct C {
	int *z[4];
};

void test_struct(struct A *a, struct B *b)
{
}
void test_array(int *a)
{
}
void test_ptr_array(struct C *c)
{
}
void test_arrays(struct A *a, struct A *other)
{
}

int main(void)
{
	struct A a = {{1, 2, 3, 4}}, other = {{5, 6, 7, 8}};
	struct B b = {{{5, 6}, {7, 8}}};
	struct C c = {{&a.x[0], &a.x[1], &a.x[2], &a.x[3]}};
	test_struct(&a, &b);
	test_array(a.x);
	test_ptr_array(&c);
	test_arrays(&a, &other);
	return 0;
}
