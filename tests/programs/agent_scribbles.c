/* A program that writes over the memory that it shares with trapline: MODE, and a number that the random ones begin with. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static unsigned long state;

static unsigned random32(void) {
    state = state * 6364136223846793005UL + 1442695040888963407UL;
    return state >> 33;
}

static volatile int calls;

__attribute__((noinline)) int work(int i) {
    calls++;
    return i * 3;
}

int main(int argc, char **argv) {
    int mode = atoi(argv[1]);
    unsigned long from = 0, to = 0, len;
    char line[4096];
    state = atoi(argv[2]);
    for (int i = 0; i < 1000; i++) work(i);
    FILE *maps = fopen("/proc/self/maps", "r");
    while (fgets(line, sizeof line, maps))
        if (strstr(line, "memfd:trapline ")) sscanf(line, "%lx-%lx", &from, &to);
    fclose(maps);
    if (!from) return 3;
    len = to - from;
    for (int round = 0; round < 200; round++) {
        switch (mode) {
        case 0: /* bytes of the headers */
            for (int k = 0; k < 200; k++) ((unsigned char *)from)[random32() % 65536] = random32();
            break;
        case 1: /* words of them, some as large as can be */
            for (int k = 0; k < 200; k++)
                ((unsigned long *)from)[random32() % 8192] = random32() % 2 ? ~0UL : (unsigned long)random32() << random32() % 33;
            break;
        case 2: /* pages */
            memset((void *)(from + (random32() % len & ~4095UL)), random32(), 4096);
            break;
        case 3: /* all of it */
            for (unsigned long at = 0; at < len; at += 8)
                *(unsigned long *)(from + at) = (unsigned long)random32() << 32 | random32();
            break;
        case 4: /* counters, and no header */
            memset((void *)from, 0xff, 4096);
            memset((void *)(from + 4096), 0, 4096);
            break;
        case 5: /* a thread for each chunk, with a record that can be, and losses */
            for (unsigned n = 0; n < 60; n++) {
                unsigned *header = (unsigned *)(from + 4096 + 64 * n);
                unsigned *chunk = (unsigned *)(from + 4096 + 65536 + 65536UL * n);
                chunk[0] = 1, chunk[1] = 1, chunk[2] = 5, chunk[3] = 2;
                header[1] = 1000000 + random32() % 100000, header[2] = round;
                header[8] = random32(), header[9] = random32();
                header[0] = 2;
            }
            break;
        case 6: /* the files that it has open, cut off */
            for (int fd = 3; fd < 64; fd++)
                if (ftruncate(fd, 0)) continue;
            break;
        case 7: /* memory that is read only, or gone, from a child that shares it */
            if (round % 50 == 0 && fork() == 0) {
                memset((void *)from, 0xee, 8192);
                munmap((void *)(from + 4096), len - 4096);
                for (int i = 0; i < 200; i++) work(i);
                _exit(0);
            }
            break;
        }
        for (int i = 0; i < 200; i++) work(i);
        void *volatile block = malloc(10);
        free(block);
        usleep(1000);
    }
    return 0;
}
