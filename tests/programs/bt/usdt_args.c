/* Static probes whose arguments are constants, in registers, and in memory, of each size and sign; with an argument, it does nothing. */
#include "../note.h"
#include <stdint.h>

#define BITS 0xf7f6f5f4f3f2f1f0

static struct {
	int64_t s64;
	uint64_t u64;
	int32_t s32;
	uint32_t u32;
	int16_t s16;
	uint16_t u16;
	int8_t s8;
	uint8_t u8;
} memory = {BITS, BITS, (int32_t)BITS, (uint32_t)BITS, (int16_t)BITS, (uint16_t)BITS, (int8_t)BITS, (uint8_t)BITS};

#define EACH(one)                                                                                          \
	one(u64, "8", "");                                                                                 \
	one(s64, "-8", "");                                                                                \
	one(u32, "4", "k");                                                                                \
	one(s32, "-4", "k");                                                                               \
	one(u16, "2", "w");                                                                                \
	one(s16, "-2", "w");                                                                               \
	one(u8, "1", "b");                                                                                 \
	one(s8, "-1", "b")

#define CONSTANT(name, size, part) NOTE("usdt_args", "const_" #name, "0", size "@%[n]", [n] "i"(memory_##name))
#define REGISTER(name, size, part)                                                                         \
	NOTE("usdt_args", "reg_" #name, "0", size "@%" part "[n]", [n] "r"((uint64_t)BITS))
#define ADDRESS(name, size, part)                                                                          \
	NOTE("usdt_args", "addr_" #name, "0", size "@(%[at])", [at] "r"(&memory.name))
#define INDEX(name, size, part)                                                                            \
	NOTE("usdt_args", "index_" #name, "0", size "@(%[at],%[by],8)", [at] "r"((char *)&memory.name - 8),    \
	     [by] "r"(1L))

enum { memory_u16 = 0xf1f0, memory_s16 = -3600, memory_u8 = 0xf0, memory_s8 = -16 };
#define memory_u64 ((uint64_t)BITS)
#define memory_s64 ((int64_t)BITS)
#define memory_u32 0xf3f2f1f0
#define memory_s32 ((int32_t)0xf3f2f1f0)

int main(int argc, char **argv)
{
	if (argc > 1)
		return 0;
	EACH(CONSTANT);
	EACH(REGISTER);
	EACH(ADDRESS);
	EACH(INDEX);
	return 0;
}
