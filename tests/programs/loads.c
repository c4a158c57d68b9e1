// Calls a function of its own all the time, while another thread loads and unloads the library that the argument names, and calls its
// function. Ends with SIGTERM, and says whether all results were right.
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>

static volatile sig_atomic_t ended;
static volatile int wrong;

static void end(int signal) { ended = 1; }

__attribute__((noinline)) int twice(int n) {
    volatile int sum = n;
    return sum + n;
}

static void *load(void *path) {
    for (int i = 0; !ended; i++) {
        void *module = dlopen(path, RTLD_NOW);
        int (*function)(int) = module ? (int (*)(int))dlsym(module, "module_function") : 0;
        wrong |= !function || function(i) != i * 3 + 7;
        if (module) dlclose(module);
    }
    return 0;
}

int main(int argc, char **argv) {
    pthread_t thread;
    signal(SIGTERM, end);
    puts("begun");
    fflush(stdout);
    pthread_create(&thread, 0, load, argv[1]);
    for (int i = 0; !ended; i = (i + 1) & 0xffff) wrong |= twice(i) != 2 * i;
    pthread_join(thread, 0);
    printf("right %d\n", wrong);
}
