// A library that is loaded and unloaded.
__attribute__((noinline)) int library_inner(int n) { return n * 3; }
int library_function(int n) { return library_inner(n) + library_inner(n + 1); }
