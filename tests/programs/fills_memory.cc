// Allocates until there is no more, and prints how many blocks it got: by malloc, and ends by abort; by operator new, until it throws, in a thread
// among others that wait; by realloc of one block after the other in a child of fork.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

static const size_t size = 100000;
#define ALONE __attribute__((noinline))

ALONE static long mallocs() {
    long n = 0;
    for (void *p; (p = malloc(size)); n++) memset(p, 1, 100);
    return n;
}
ALONE static void makes(long *n) {
    for (;;) {
        memset(operator new(size), 1, 100);
        ++*n;
    }
}
ALONE static long news() {
    long n = 0;
    try {
        makes(&n);
    } catch (const std::bad_alloc &) {
    }
    return n;
}
ALONE static long reallocs() {
    long n = 0;
    for (void *p; (p = realloc(malloc(10), size)); n++) memset(p, 1, 100);
    return n;
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    if (!strcmp(how, "malloc")) {
        fprintf(stderr, "%ld\n", mallocs());
        abort();
    }
    long n = 0;
    if (!strcmp(how, "new")) {
        int ends[2];
        if (pipe(ends)) return 1;
        std::vector<std::thread> others;
        for (int i = 0; i < 8; i++)
            others.emplace_back([&] {
                char byte;
                if (read(ends[0], &byte, 1) != 0) _exit(1);
            });
        std::thread([&] { n = news(); }).join();
        close(ends[1]);
        for (auto &t : others) t.join();
    } else if (pid_t child = fork()) {
        int status;
        waitpid(child, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
    } else {
        n = reallocs();
    }
    fprintf(stderr, "%ld\n", n);
    // Blocks are not freed: at the end the process has none to spare.
    _exit(3);
}
