/* Static probes as sys/sdt.h describes them: a place in the code, and a note with provider, name, semaphore and arguments. */
#define NOTE_TEXT(provider, name, semaphore, arguments)                                                    \
			 "990:	nop\n"                                                                     \
			 "	.pushsection .note.stapsdt,\"\",\"note\"\n"                                \
			 "	.balign 4\n"                                                               \
			 "	.4byte 992f-991f, 994f-993f, 3\n"                                          \
			 "991:	.asciz \"stapsdt\"\n"                                                      \
			 "992:	.balign 4\n"                                                               \
			 "993:	.8byte 990b, _.stapsdt.base, " semaphore "\n"                              \
			 "	.asciz \"" provider "\"\n"                                                 \
			 "	.asciz \"" name "\"\n"                                                     \
			 "	.asciz \"" arguments "\"\n"                                                \
			 "994:	.balign 4\n"                                                               \
			 "	.popsection\n"
#define NOTE(provider, name, semaphore, arguments, ...)                                                    \
	__asm__ volatile(NOTE_TEXT(provider, name, semaphore, arguments)::__VA_ARGS__)

/* One with a number and a text. */
#define NOTE2(provider, name, semaphore, number, text)                                                     \
	NOTE(provider, name, semaphore, "-8@%[n] 8@%[t]", [n] "r"((long)(number)), [t] "r"(text))

__asm__(".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"
	".weak _.stapsdt.base\n"
	".hidden _.stapsdt.base\n"
	"_.stapsdt.base: .space 1\n"
	".popsection\n");
