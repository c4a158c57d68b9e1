// execs_itself N: executes itself N times, each with arguments and an environment that say which time it is: from the first thread alone, from the
// first of three, or from another of them. Without randomisation of addresses, the new program's strings lie where the old one's did.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <unistd.h>

static char self[4096], filler[100000];
static int turn;

static void *runs(void *unused) {
    for (;;) usleep(100);
    return unused;
}

static void *execs(void *unused) {
    char next[32], word[64], environment[64];
    snprintf(next, sizeof next, "%d", turn - 1);
    snprintf(word, sizeof word, "argument-of-%d", turn);
    snprintf(environment, sizeof environment, "TURN=%d", turn);
    memset(filler, 'a' + turn % 26, sizeof filler - 1);
    char *arguments[] = {self, next, word, filler, NULL}, *variables[] = {environment, NULL};
    execve(self, arguments, variables);
    perror("execve");
    _exit(1);
    return unused;
}

int main(int argc, char **argv) {
    if (argc < 2 || readlink("/proc/self/exe", self, sizeof self - 1) < 0) return 2;
    turn = atoi(argv[1]);
    if (turn <= 0) return 0;
    if (argc == 2) personality(ADDR_NO_RANDOMIZE);
    pthread_t thread;
    for (int i = 0; turn % 3 && i < 2; i++) pthread_create(&thread, NULL, runs, NULL);
    usleep(300);
    if (turn % 3 == 1) {
        pthread_create(&thread, NULL, execs, NULL);
        for (;;) pause();
    }
    execs(NULL);
}
