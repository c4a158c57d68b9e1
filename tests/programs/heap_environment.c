// A preloaded library that takes what tools have put there out of the environment of the program that HEAP_PROGRAM names, before its main:
// a program that reads all of its environment allocates the same under each tool, then. What is left is copied: perl looks whether it is
// just behind the arguments.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

static void the_same_for_all(void) {
    static const char *const kept[] = {"LC_ALL=", "PATH=", "HOME=", "PYTHON", "PERL_", "GIT_"};
    const char *program = getenv("HEAP_PROGRAM");
    if (!program || strcmp(program, program_invocation_short_name)) return;
    static char copies[8192], *copy = copies;
    char **to = environ;
    for (char **from = environ; *from; from++) {
        size_t i = 0, n = sizeof kept / sizeof *kept;
        while (i < n && strncmp(*from, kept[i], strlen(kept[i]))) i++;
        size_t length = strlen(*from) + 1;
        if (i == n || length > (size_t)(copies + sizeof copies - copy)) continue;
        *to++ = memcpy(copy, *from, length);
        copy += length;
    }
    *to = NULL;
    // Shells put them in an order of their own.
    for (char **end = to, **p = environ + 1; environ < end && p < end; p++)
        for (char **q = p; q > environ && strcmp(q[-1], q[0]) > 0; q--) {
            char *other = q[-1];
            q[-1] = q[0];
            q[0] = other;
        }
}

// What libraries that tools preload do when they begin, they have done by now.
int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv, void (*init)(void), void (*fini)(void),
                      void (*loader)(void), void *stack) {
    __typeof__(&__libc_start_main) original = (__typeof__(original))dlsym(RTLD_NEXT, "__libc_start_main");
    the_same_for_all();
    return original(main, argc, argv, init, fini, loader, stack);
}
