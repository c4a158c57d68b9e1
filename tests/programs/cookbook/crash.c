// Ends with SIGSEGV in a function that is called with a null pointer.
#include <string.h>
__attribute__((noinline)) static int length_of(const char *line)
{
    return line[0] == '#' ? 0 : (int)strlen(line);
}
__attribute__((noinline)) static int parse(const char **lines)
{
    int n = 0;
    for (int i = 0; i < 3; i++)
        n += length_of(lines[i]);
    return n;
}
int main(void)
{
    const char *lines[] = { "one", "two", 0 };
    return parse(lines);
}
