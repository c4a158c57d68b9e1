/* Two of its arguments are on the stack. */
void too_many_args(long a, long b, long c, long d, long e, long f, long first, long second)
{
}

int main(void)
{
	too_many_args(0, 1, 2, 4, 8, 16, 32, 64);
	return 0;
}
