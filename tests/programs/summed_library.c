// A library that summed.c loads, and that calls back.
int work(int);
int summed_in_library(int n) { return work(n) + 1; }
