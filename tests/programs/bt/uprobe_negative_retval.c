/* Functions that return numbers below zero: 221 calls whose results are -2210 together, and main's own. */
int function1(int i)
{
	return i;
}

int main(void)
{
	for (int i = -120; i <= 100; i++)
		function1(i);
	return -100;
}
