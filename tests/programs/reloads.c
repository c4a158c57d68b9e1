/* Loads libraries again and again, and calls their function each time: FIRST SECOND NEXT N. FIRST is loaded N times; at another place, because something is
 * mapped where it was; in turn with SECOND, which may get its place; after a rename of NEXT to it; and while another thread runs. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static long sum;
static volatile int ends;

static void *use(const char *path) {
    void *library = dlopen(path, RTLD_NOW);
    if (!library) {
        puts(dlerror());
        exit(1);
    }
    int *(*function)(int) = (int *(*)(int))dlsym(library, "module_function");
    int *number = function(3);
    sum += *number;
    free(number);
    Dl_info info;
    dladdr((void *)function, &info);
    dlclose(library);
    return info.dli_fbase;
}

static void *runs(void *nothing) {
    while (!ends) sched_yield();
    return nothing;
}

int main(int argc, char **argv) {
    int n = atoi(argv[4]);
    void *place = 0;
    for (int i = 0; i < n; i++) place = use(argv[1]);
    void *taken = mmap(place, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (taken != place) return 2;
    for (int i = 0; i < n; i++)
        if (use(argv[1]) == place) return 3;
    munmap(taken, 4096);
    for (int i = 0; i < n; i++) {
        use(argv[1]);
        use(argv[2]);
    }
    void *held = dlopen(argv[2], RTLD_NOW);
    use(argv[1]);
    use(argv[2]);
    dlclose(held);
    if (rename(argv[3], argv[1])) return 4;
    for (int i = 0; i < n; i++) use(argv[1]);
    pthread_t thread;
    pthread_create(&thread, 0, runs, 0);
    for (int i = 0; i < n; i++) use(argv[1]);
    ends = 1;
    pthread_join(thread, 0);
    printf("%ld\n", sum);
    return 0;
}
