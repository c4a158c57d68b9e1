/* Functions with several names: of a library (-DLIBRARY), strong and weak, hidden and shown, in two versions; and of this program, which calls each once. */
#include <stdio.h>

#define OWN __attribute__((noinline, noclone))
#ifdef LIBRARY
static volatile int calls;
OWN int __lib_write(int n) { calls++; return n + 1; }
int lib_write(int n) __attribute__((weak, alias("__lib_write")));
OWN __attribute__((visibility("hidden"))) int lib_close_hidden(int n) { calls++; return n + 2; }
int lib_close(int n) __attribute__((alias("lib_close_hidden")));
int lib_close64(int n) __attribute__((weak, alias("lib_close_hidden")));
OWN int lib_seek_old(int n) { calls++; return n + 3; }
OWN int lib_seek_new(int n) { calls++; return n + 4; }
__asm__(".symver lib_seek_old,lib_seek@LIB_1\n.symver lib_seek_new,lib_seek@@LIB_2\n");
#else
int lib_write(int), lib_close(int), lib_close64(int), lib_seek(int);
__asm__(".symver old_seek,lib_seek@LIB_1\n");
int old_seek(int);
int main(void)
{
    printf("%d\n", lib_write(1) + lib_close(2) + lib_close64(3) + lib_seek(4) + old_seek(5));
    return 0;
}
#endif
