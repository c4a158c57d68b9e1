// A library that is loaded and unloaded.
__attribute__((noinline)) int module_function(int n) { return n * 3 + 7; }
