/* Structures that a script reads: f is called three times, with what it has changed in between. */
struct inner { int n; const char *name; char tag[8]; };
struct outer { long a; struct inner *in; int arr[3]; unsigned bits : 5; };

__attribute__((noinline)) int f(struct outer *o, const char *text, int *n)
{
	return o->in->n + *n + text[0];
}

int main(void)
{
	static char text[] = "a text", name[] = "inner name";
	struct inner i = {7, name, "tagged"};
	struct outer o = {42, &i, {5, 6, 7}, 19};
	int n = 11, sum = 0;

	for (int k = 0; k < 3; k++) {
		i.n = k;
		/* In memory before anybody reads them. */
		text[0] = 'a';
		name[0] = 'i';
		sum += f(&o, text, &n);
	}
	return sum == 0;
}
