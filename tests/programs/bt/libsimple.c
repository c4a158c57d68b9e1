/* A library that is not executable. */
int fun(int i)
{
	return i + 1;
}
