// What the programs of hazards share: scenarios by name, and functions that count their calls, in children of fork too.
//
// `PROGRAM SCENARIO` prints what comes out of the scenario, which is the same at each run, and appends `NAME COUNT` for each counting
// function to the file `counts` in its directory. With `HAZARDS_ROUNDS` in the environment it does so that often; with `HAZARDS_FIFO` it begins
// when somebody has opened that file and closed it again.
#pragma once
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifdef __clang__
#define ALONE __attribute__((noinline, optnone))
#else
#define ALONE __attribute__((noipa))
#endif

// Behind a call: no compiler makes a loop of the function.
#define KEEP_CALL __asm__ volatile("" ::: "memory")

// Counting functions: the program defines COUNTED(X) as X(NAME) of each.
#define ENUMERATOR(name) c_##name,
#define TEXT(name) #name,
enum counter { COUNTED(ENUMERATOR) COUNTERS };
static const char *const counter_names[COUNTERS] = {COUNTED(TEXT)};
static long *counters;
// 1: a scenario breaks off calls between the stub and the count, or in processes that nobody can trace.
static int inexact;
#define COUNT(name) __atomic_fetch_add(&counters[c_##name], 1, __ATOMIC_RELAXED)

static void write_counts(void) {
    FILE *file = inexact ? NULL : fopen("counts", "a");
    for (int i = 0; file && i < COUNTERS; i++)
        if (counters[i]) fprintf(file, "%s %ld\n", counter_names[i], counters[i]);
    if (file) fclose(file);
}

struct scenario {
    const char *name;
    void (*run)(void);
};

static char **arguments;

static int begin(void) {
    char byte;
    const char *rounds = getenv("HAZARDS_ROUNDS"), *path = getenv("HAZARDS_FIFO");
    FILE *fifo = path ? fopen(path, "r") : NULL;
    if (fifo && fread(&byte, 1, 1, fifo)) exit(98);
    if (fifo) fclose(fifo);
    unsetenv("HAZARDS_FIFO");
    return rounds ? atoi(rounds) : 1;
}

static int run_scenarios(const struct scenario *all, int argc, char **argv) {
    counters = (long *)mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    arguments = argv;
    int found = 0;
    for (int rounds = begin(); rounds > 0; rounds--)
        for (const struct scenario *s = all; argc > 1 && s->name; s++) {
            // "all": those that leave the process as it was have names in small letters.
            int wanted = strcmp(argv[1], "all") ? !strcmp(argv[1], s->name) : s->name[0] >= 'a';
            if (!wanted) continue;
            found = 1;
            s->run();
            fflush(stdout);
        }
    write_counts();
    return found ? 0 : 99;
}
