/* A library with static probes. */
#include "../note.h"

void lib_probe_1(void)
{
	NOTE2("tracetestlib", "lib_probe_1", "0", 1, "one");
}
void lib_probe_2(void)
{
	NOTE2("tracetestlib", "lib_probe_2", "0", 2, "two");
}
