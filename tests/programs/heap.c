// What C programs do with the heap, in one thread.
#include "heap.h"
#include <dlfcn.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>

// Leaks by several ways to one function, blocks that others free, and one that is inlined.
ALONE static void *leaks(size_t size) {
    void *block = MALLOC(size);
    KEEP_CALL;
    return block;
}
ALONE static void *leaks_zeroed(size_t n, size_t size) {
    char *block = CALLOC(n, size);
    for (size_t i = 0; i < n * size; i++)
        if (block[i]) fail("calloc gave no zeroes\n");
    return block;
}
static inline __attribute__((always_inline)) void *leaks_inlined(size_t size) {
    void *block = MALLOC(size);
    KEEP_CALL;
    return block;
}
ALONE static void one_way(size_t size) {
    leaks(size);
    KEEP_CALL;
}
ALONE static void another_way(size_t size) {
    leaks(size);
    leaks_zeroed(3, size);
    leaks_inlined(size);
    KEEP_CALL;
}
ALONE static void gives_back(void *block) {
    FREE(block);
    KEEP_CALL;
}
ALONE static void leaks_by_several_ways(void) {
    for (size_t i = 0; i < 20; i++) {
        one_way(i * 10 + 1);
        another_way(100 + i);
        void *blocks[3] = {leaks(1000), leaks_zeroed(7, 9), leaks_inlined(200000)};
        for (size_t j = 0; j < 3; j++) gives_back(blocks[j]);
    }
    gives_back(NULL);
}

// Resizing: growing, shrinking, from nothing, to nothing.
ALONE static void *grows(void *block, size_t to) { return REALLOC(block, to); }
ALONE static void *shrinks(void *block, size_t to) { return REALLOC(block, to); }
ALONE static void *from_nothing(size_t size) { return REALLOC(NULL, size); }
ALONE static void *to_nothing(void *block) { return REALLOC(block, 0); }
ALONE static void *grows_array(void *block, size_t n, size_t size) {
    return RESIZE(block, n * size, reallocarray(old_, n, size));
}
ALONE static void resizes(void) {
    void *kept[3] = {NULL, NULL, NULL};
    for (size_t round = 0; round < 50; round++) {
        char *block = from_nothing(16);
        // In place, by moving, and between the arena and mappings of their own.
        for (size_t to = 16; to < 500000; to = to * 5 / 3 + round) {
            block = grows(block, to);
            block[to - 1] = 1;
        }
        for (size_t to = 400000; to > 8; to /= 3) block = shrinks(block, to);
        block = grows_array(block, 100, round + 1);
        if (round % 3) gives_back(to_nothing(block));
        else if (round % 2) gives_back(block);
        else {
            gives_back(kept[round % 9 / 3]);
            kept[round % 9 / 3] = block;
        }
    }
}

// What is refused leaves everything as it was.
static size_t half_of_all(void) {
    static volatile size_t half = PTRDIFF_MAX;
    return half;
}
ALONE static void refused(void) {
    size_t huge = half_of_all() - 1000;
    void *block = MALLOC(100), *other = CALLOC(10, 10), *aligned = &aligned;
    if (malloc(huge) || calloc(huge, 4) || calloc(4, huge) || memalign(64, huge)) fail("so much cannot be\n");
    if (posix_memalign(&aligned, 3, 100) != EINVAL || posix_memalign(&aligned, 4, 100) != EINVAL) fail("not refused\n");
    if (posix_memalign(&aligned, 64, huge) != ENOMEM || aligned != &aligned) fail("not refused\n");
    if (REALLOC(block, huge)) fail("so much cannot be\n");
    if (RESIZE(other, huge, reallocarray(old_, huge, 16))) fail("an overflow\n");
    memset(block, 1, 100);
    FREE(other);
}

ALONE static void aligned_blocks(void) {
    static const size_t alignments[] = {16, 64, 4096, 65536};
    for (size_t i = 0; i < 4; i++) {
        size_t to = alignments[i];
        void *blocks[3] = {NULL, TAKE(aligned_alloc(to, to * 2), to * 2), TAKE(memalign(to, 100 + i), 100 + i)};
        if (posix_memalign(&blocks[0], to, 33 + i)) fail("refused\n");
        TAKE(blocks[0], 33 + i);
        for (int j = 0; j < 3; j++)
            if ((uintptr_t)blocks[j] % to) fail("not aligned\n");
        FREE(blocks[i % 3]);
    }
    void *page = TAKE(valloc(100), 100);
    if ((uintptr_t)page % 4096) fail("not aligned\n");
    FREE(TAKE(valloc(5000), 5000));
}
// By itself: not every tool knows it.
ALONE static void page_blocks(void) {
    TAKE(pvalloc(8192), 8192);
    FREE(TAKE(pvalloc(4096), 4096));
}

ALONE static void blocks_of_nothing(void) {
    void *blocks[] = {MALLOC(0), CALLOC(0, 8), CALLOC(8, 0), REALLOC(NULL, 0), MALLOC(0)};
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < i; j++)
            if (!blocks[i] || blocks[i] == blocks[j]) fail("not a block of its own\n");
    FREE(blocks[4]);
}

// A leak at the bottom of 200 frames.
ALONE static int descends(int depth) {
    if (depth == 0) {
        leaks(4321);
        return 1;
    }
    int inner = descends(depth - 1);
    KEEP_CALL;
    return inner + 1;
}
ALONE static void deep(void) {
    if (descends(199) != 200) fail("not so deep\n");
}

// Frames that have allocated are left by longjmp; what comes next has other stacks at the same depth.
static jmp_buf back;
#pragma GCC diagnostic ignored "-Winfinite-recursion"
ALONE static void allocates_and_leaves(int depth) {
    volatile char room[200];
    memset((char *)room, depth, sizeof room);
    void *block = MALLOC(50);
    if (depth == 0) longjmp(back, 1);
    allocates_and_leaves(depth - 1);
    FREE(block);
}
ALONE static void after_a_jump(int depth) {
    if (depth) after_a_jump(depth - 1);
    else leaks(77);
    KEEP_CALL;
}
ALONE static void jumps(void) {
    for (volatile int i = 0; i < 30; i++) {
        if (!setjmp(back)) allocates_and_leaves(i % 10);
        after_a_jump(i % 10);
    }
}

// Coroutines on stacks of the heap and of a mapping, which take turns.
static ucontext_t contexts[2], home;
static int turn;
ALONE static void in_a_coroutine(int depth) {
    if (depth) in_a_coroutine(depth - 1);
    else leaks(500);
    KEEP_CALL;
}
static void coroutine(void) {
    int own = turn;
    for (int i = 0; i < 20; i++) {
        in_a_coroutine(i);
        void *block = leaks(60);
        turn = !own;
        swapcontext(&contexts[own], &contexts[!own]);
        FREE(block);
    }
    setcontext(&home);
}
ALONE static void coroutines(void) {
    enum { SIZE = 128 << 10 };
    static char in_program[SIZE] __attribute__((aligned(16)));
    void *stacks[2] = {in_program, MALLOC(SIZE)};
    for (int i = 0; i < 2; i++) {
        getcontext(&contexts[i]);
        contexts[i].uc_stack.ss_sp = stacks[i];
        contexts[i].uc_stack.ss_size = SIZE;
        makecontext(&contexts[i], coroutine, 0);
    }
    volatile int begun = 0;
    getcontext(&home);
    // The first coroutine that ends leads here: the other one keeps a block.
    if (!begun) {
        begun = 1;
        setcontext(&contexts[0]);
    }
}

// A library that is closed: its code is gone, its blocks are not.
ALONE static void libraries(void) {
    for (int i = 0; i < 3; i++) {
        void *library = dlopen(getenv("HEAP_LIBRARY"), RTLD_NOW);
        if (!library) fail("no library\n");
        void *(*allocates)(size_t) = (void *(*)(size_t))dlsym(library, "library_allocates");
        void *block = take_as("library_allocates", allocates(1000), 1000);
        take_as("library_allocates", allocates(10), 10);
        if (i) FREE(block);
        dlclose(library);
        leaks(5);
    }
}

// Before main and behind it.
static void *of_constructor;
__attribute__((constructor)) static void constructor(void) {
    if (getenv("HEAP_STATICS")) of_constructor = MALLOC(11);
}
static void at_exit(void) {
    MALLOC(13);
    FREE(of_constructor);
}
__attribute__((destructor)) static void destructor(void) {
    if (getenv("HEAP_STATICS")) MALLOC(17);
}
ALONE static void statics(void) {
    atexit(at_exit);
    MALLOC(19);
}

// Maps and unmaps, and prints what is mapped in the end: offsets from the first page, in pages.
ALONE static void *maps(void *at, size_t pages) {
    int fixed = at ? MAP_FIXED : 0;
    void *got = mmap(at, pages * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | fixed, -1, 0);
    if (got == MAP_FAILED) fail("no mapping\n");
    return got;
}
ALONE static void *remaps(void *at, size_t from, size_t to, void *where) {
    void *got = where ? mremap(at, from * 4096, to * 4096, MREMAP_MAYMOVE | MREMAP_FIXED, where)
                      : mremap(at, from * 4096, to * 4096, 0);
    if (got == MAP_FAILED) fail("no mapping\n");
    return got;
}
ALONE static void mappings(void) {
    char *first = maps(NULL, 100), text[120];
    munmap(first, 10 * 4096);              // the beginning
    munmap(first + 95 * 4096, 5 * 4096);   // the end
    munmap(first + 20 * 4096, 4096);       // a page in the middle
    maps(first + 30 * 4096, 5);            // over itself
    remaps(first + 40 * 4096, 10, 2, NULL); // shrinks
    remaps(first + 40 * 4096, 2, 4, NULL);  // grows
    remaps(first + 60 * 4096, 5, 5, first + 20 * 4096); // moves to where something is
    if (mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED) fail("a mapping of nothing\n");
    int n = snprintf(text, sizeof text, "first 10-44 50-60 65-95\n");
    if (write(1, text, (size_t)n) != n) abort();
}

// For the commands that look at a running program: reads a word, does what it says, answers.
ALONE static void answers(void) {
    char word;
    void *last = NULL;
    while (read(0, &word, 1) == 1) {
        if (word == 'a') last = leaks(1000);
        if (word == 'z') leaks_zeroed(2, 50);
        if (word == 'f') gives_back(last);
        if (word == 'q') break;
        if (word != '\n' && write(1, ".\n", 2) != 2) abort();
    }
}

// Goes on until it is killed, and keeps what it says.
ALONE static void endless(void) {
    for (int i = 0; i < 100; i++) leaks(1000);
    said = 1;
    if (write(1, "ready\n", 6) != 6) abort();
    for (;;) gives_back(leaks(10));
}
// Long enough that something can happen to its tracer.
ALONE static void long_work(void) {
    long n = getenv("HEAP_ROUNDS") ? atol(getenv("HEAP_ROUNDS")) : 10000000;
    if (write(1, "ready\n", 6) != 6) abort();
    for (long i = 0; i < n; i++) {
        void *block = malloc((size_t)(i % 1000));
        __asm__ volatile("" ::"r"(block) : "memory");
        free(block);
    }
    leaks(123);
}

static const struct scenario all[] = {
    {"leaks", leaks_by_several_ways},
    {"resizes", resizes},
    {"refused", refused},
    {"aligned", aligned_blocks},
    {"pages", page_blocks},
    {"nothing", blocks_of_nothing},
    {"deep", deep},
    {"jumps", jumps},
    {"coroutines", coroutines},
    {"libraries", libraries},
    {"statics", statics},
    {"mappings", mappings},
    {"answers", answers},
    {"endless", endless},
    {"long_work", long_work},
    {NULL, NULL},
};

int main(int argc, char **argv) { return run_scenario(all, argc, argv); }
