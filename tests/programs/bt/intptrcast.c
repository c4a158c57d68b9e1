/* Its last argument is on the stack. */
void fn(long a, long b, long c, long d, long e, long f, long on_stack)
{
}

int main(void)
{
	fn(1, 2, 3, 4, 5, 6, 3258);
	return 0;
}
