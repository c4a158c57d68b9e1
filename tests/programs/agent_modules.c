// Loads and unloads a library again and again.
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv) {
    long sum = 0;
    for (int i = 0; i < 100; i++) {
        void *module = dlopen(argv[1], RTLD_NOW);
        int (*function)(int) = (int (*)(int))dlsym(module, "module_function");
        sum += function(i);
        dlclose(module);
    }
    printf("%ld\n", sum);
}
