// What the programs of `trapline heap`'s tests share: an account of their blocks, and scenarios by name.
//
// `PROGRAM SCENARIO` prints, when its last destructor runs, a line for each function that has allocated:
//     heap FUNCTION BLOCKS BYTES ALLOCATIONS BYTES_OF_THEM
// what is outstanding of it, and what it has allocated in all. A block that is resized is a new one of the function that resizes it. Then
// `heap_frees N`: the blocks that the program has given back, resized ones among them. A child of fork says `inherited FUNCTION BLOCKS BYTES`
// of what it has from its parent and has not given back; that is in no other line of its.
//
// The account allocates nothing and takes no lock: handlers of signals and all threads may use it. Nothing here uses stdio, so what a
// scenario in C allocates is what it says, unless libc allocates on its way.
#pragma once
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef __cplusplus
#define ALONE __attribute__((noinline, noclone))
#else
#define ALONE __attribute__((noipa))
#endif
// Behind a call: it stays a call.
#define KEEP_CALL __asm__ volatile("" ::: "memory")

enum { OWNERS = 64, SLOTS = 1 << 16, GONE = 1, BUSY = 2 };
struct owner {
    const char *name;
    long blocks, bytes, allocations, allocated, inherited, inherited_bytes;
};
struct slot {
    uintptr_t address;
    struct owner *owner;
    long size;
    int inherited;
};
static struct owner owners[OWNERS];
static struct slot slots[SLOTS];
static long frees;

#define ADD(to, n) __atomic_fetch_add(&(to), (long)(n), __ATOMIC_RELAXED)

static inline void fail(const char *why) {
    if (write(2, why, strlen(why)) >= 0) abort();
}

static struct owner *owner_of(const char *name) {
    for (struct owner *o = owners; o < owners + OWNERS; o++) {
        const char *there = __atomic_load_n(&o->name, __ATOMIC_ACQUIRE);
        if (!there && __atomic_compare_exchange_n(&o->name, &there, name, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) return o;
        if (!strcmp(there, name)) return o;
    }
    fail("too many owners\n");
    return NULL;
}

static inline size_t place_of(uintptr_t address) { return (address >> 4) * 0x9e3779b97f4a7c15u >> 48; }

// A block that a function holds, without an allocation: a resized one that stays where it was.
static void hold(struct owner *owner, void *block, long size) {
    for (size_t i = 0, at = place_of((uintptr_t)block); i < SLOTS; i++, at++) {
        struct slot *s = &slots[at % SLOTS];
        uintptr_t there = __atomic_load_n(&s->address, __ATOMIC_ACQUIRE);
        if (there > GONE || !__atomic_compare_exchange_n(&s->address, &there, BUSY, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            continue;
        s->owner = owner;
        s->size = size;
        s->inherited = 0;
        __atomic_store_n(&s->address, (uintptr_t)block, __ATOMIC_RELEASE);
        ADD(owner->blocks, 1);
        ADD(owner->bytes, size);
        return;
    }
    fail("too many blocks\n");
}

// No longer holds a block; whose it was, and its size.
static struct slot let_go(void *block) {
    for (size_t i = 0, at = place_of((uintptr_t)block); i < SLOTS; i++, at++) {
        struct slot *s = &slots[at % SLOTS], was = *s;
        uintptr_t there = __atomic_load_n(&s->address, __ATOMIC_ACQUIRE);
        if (!there) break;
        if (there != (uintptr_t)block) continue;
        was.owner = s->owner;
        was.size = s->size;
        ADD(*(s->inherited ? &was.owner->inherited : &was.owner->blocks), -1);
        ADD(*(s->inherited ? &was.owner->inherited_bytes : &was.owner->bytes), -was.size);
        __atomic_store_n(&s->address, (uintptr_t)GONE, __ATOMIC_RELEASE);
        return was;
    }
    fail("a block that is not held\n");
    return (struct slot){0, NULL, 0, 0};
}

// What a function has just allocated.
static void *take_as(const char *name, void *block, size_t size) {
    struct owner *owner = owner_of(name);
    if (!block) return block;
    ADD(owner->allocations, 1);
    ADD(owner->allocated, size);
    hold(owner, block, (long)size);
    return block;
}
#define TAKE(block, size) take_as(__func__, (block), (size))
#define MALLOC(size) TAKE(malloc(size), size)
#define CALLOC(n, size) TAKE(calloc(n, size), (n) * (size))

// What goes before a block is given back, by whatever function.
static inline void *give(void *block) {
    if (block) {
        let_go(block);
        ADD(frees, 1);
    }
    return block;
}
#define FREE(block) free(give(block))

// Before a block is resized, and behind it.
static inline struct slot before_resize(void *block) {
    return block ? let_go(block) : (struct slot){0, NULL, 0, 0};
}
static inline void *resized(const char *name, struct slot was, void *old, void *block, size_t size) {
    if (!block && size && old) hold(was.owner, old, was.size);
    else if (old) ADD(frees, 1);
    return take_as(name, block, size);
}
// realloc, and functions like it.
#define RESIZE(old, size, call)                                        \
    ({                                                                 \
        void *old_ = (old);                                            \
        struct slot was_ = before_resize(old_);                        \
        void *new_ = call;                                             \
        resized(__func__, was_, old_, new_, size);                     \
    })
#define REALLOC(old, size) RESIZE(old, size, realloc(old_, size))

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct owner *)a)->name, ((const struct owner *)b)->name);
}

// Prints the account; in processes that run no destructors, they call it.
static void say(void) {
    static char text[OWNERS * 240];
    static struct owner sorted[OWNERS];
    int n = 0, length = 0;
    while (n < OWNERS && owners[n].name) n++;
    memcpy(sorted, owners, sizeof owners);
    // Not qsort, which may allocate.
    for (int i = 1; i < n; i++)
        for (int j = i; j > 0 && by_name(&sorted[j - 1], &sorted[j]) > 0; j--) {
            struct owner other = sorted[j];
            sorted[j] = sorted[j - 1];
            sorted[j - 1] = other;
        }
    for (struct owner *o = sorted; o < sorted + n; o++)
        length += snprintf(text + length, sizeof text - (size_t)length, "heap %s %ld %ld %ld %ld\n", o->name, o->blocks,
                           o->bytes, o->allocations, o->allocated);
    for (struct owner *o = sorted; o < sorted + n; o++)
        if (o->inherited)
            length += snprintf(text + length, sizeof text - (size_t)length, "inherited %s %ld %ld\n", o->name, o->inherited,
                               o->inherited_bytes);
    length += snprintf(text + length, sizeof text - (size_t)length, "heap_frees %ld\n", frees);
    if (write(1, text, (size_t)length) != length) abort();
}

static int said;
__attribute__((destructor(101))) static void say_at_the_end(void) {
    if (!said) say();
}

// In a process that has been forked: what is told from here on is its own.
static inline void begin_anew(void) {
    for (struct owner *o = owners; o < owners + OWNERS; o++) {
        o->inherited += o->blocks;
        o->inherited_bytes += o->bytes;
        o->blocks = o->bytes = o->allocations = o->allocated = 0;
    }
    for (struct slot *s = slots; s < slots + SLOTS; s++) s->inherited = 1;
    frees = 0;
}

// Before a process becomes another program: its memory goes with it, and is no leak.
static inline void leave_all(void) {
    for (struct owner *o = owners; o < owners + OWNERS; o++) o->blocks = o->bytes = o->inherited = o->inherited_bytes = 0;
}

struct scenario {
    const char *name;
    void (*run)(void);
};
static char **arguments;

static inline int run_scenario(const struct scenario *all, int argc, char **argv) {
    arguments = argv;
    for (const struct scenario *s = all; argc > 1 && s->name; s++)
        if (!strcmp(argv[1], s->name)) {
            s->run();
            return 0;
        }
    said = 1;
    return 99;
}
