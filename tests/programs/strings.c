/* strings.c - functions that take and return addresses of strings, of which nothing but their code is known, a library's, and a static
 * probe. Says what it has found. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const words[] = { "alpha", "beta", "gamma", NULL };

__attribute__((noinline)) const char *find(const char *word)
{
	for (int i = 0; words[i]; i++)
		if (!strcmp(words[i], word))
			return words[i];
	return NULL;
}

__attribute__((noinline)) int worth(const char *word)
{
	__asm__ volatile("" : "+r"(word));
	return word[0] == 'b' ? -1 : 1;
}

int main(void)
{
	static char room[16];
	int sum = 0;

	for (int i = 0; words[i]; i++) {
		strcpy(room, words[i]);
		__asm__ volatile("990:	nop\n"
				 "	.pushsection .note.stapsdt,\"\",\"note\"\n"
				 "	.balign 4\n"
				 "	.4byte 992f-991f, 994f-993f, 3\n"
				 "991:	.asciz \"stapsdt\"\n"
				 "992:	.balign 4\n"
				 "993:	.8byte 990b, 0, 0\n"
				 "	.asciz \"words\"\n"
				 "	.asciz \"word\"\n"
				 "	.asciz \"8@%0 -4@%1\"\n"
				 "994:	.balign 4\n"
				 "	.popsection\n" ::"r"(room), "r"(i));
		sum += worth(find(room));
	}
	const char *volatile none = find("delta");

	puts(none ? none : "found");
	printf("%d\n", sum);
	return 0;
}
