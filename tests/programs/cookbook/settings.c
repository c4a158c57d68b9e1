// Looks for its settings in three places, and reads those of the current directory.
#include <stdio.h>
int main(void)
{
    const char *places[] = { "/etc/settings/app.conf", "/usr/share/settings/app.conf", "settings.txt" };
    char line[100] = "";
    for (int i = 0; i < 3; i++) {
        FILE *f = fopen(places[i], "r");
        if (f && fgets(line, sizeof line, f))
            printf("%s", line);
        if (f)
            fclose(f);
    }
    return line[0] ? 0 : 1;
}
