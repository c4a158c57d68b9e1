/* A function whose name is no identifier. */
void odd(void) __asm__("fn.odd$1");
void odd(void)
{
}

int main(void)
{
	odd();
	return 0;
}
