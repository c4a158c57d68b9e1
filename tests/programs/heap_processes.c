// Processes and the heap: a child of fork has its parent's blocks, and goes its own way with them; a new program has none.
//
// Each process prints its account, one after the other: what it has outstanding, and what it has itself allocated.
#include "heap.h"
#include <pthread.h>
#include <spawn.h>
#include <sys/wait.h>

ALONE static void *leaks(size_t size) {
    void *block = MALLOC(size);
    KEEP_CALL;
    return block;
}
ALONE static void *in_child(size_t size) {
    void *block = MALLOC(size);
    KEEP_CALL;
    return block;
}
ALONE static void *in_parent(size_t size) {
    void *block = MALLOC(size);
    KEEP_CALL;
    return block;
}
static void await(pid_t child) {
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child || status) fail("the child failed\n");
}
// The child frees a part of what it has inherited and leaks of its own; the parent goes on.
ALONE static void forks(void) {
    void *blocks[10];
    for (size_t i = 0; i < 10; i++) blocks[i] = leaks(100 + i);
    pid_t child = fork();
    if (child == 0) {
        begin_anew();
        for (int i = 0; i < 4; i++) FREE(blocks[i]);
        in_child(40);
        REALLOC(blocks[5], 5000);
        say();
        _exit(0);
    }
    await(child);
    for (int i = 3; i < 10; i++) FREE(blocks[i]);
    in_parent(70);
}
// Children of children, which end in order: the last one first.
ALONE static void generations(void) {
    void *inherited[6];
    for (int depth = 0; depth < 6; depth++) {
        inherited[depth] = leaks(10);
        pid_t child = fork();
        if (child) {
            await(child);
            exit(0);
        }
        begin_anew();
        FREE(inherited[depth / 2 * 2]);
        if (depth % 2) inherited[depth] = NULL;
        if (depth % 2 == 0) inherited[depth] = in_child(20), depth++, inherited[depth] = leaks(30);
    }
}
// A child that becomes another program, with and without blocks of its own; so does, at last, the first process.
ALONE static void execs(void) {
    for (volatile int i = 0; i < 3; i++) {
        void *block = leaks(300);
        pid_t child = i == 1 ? vfork() : fork();
        if (child == 0) {
            if (i == 2) {
                begin_anew();
                in_child(20);
                leave_all();
                say();
            }
            execl(arguments[0], arguments[0], "forks", NULL);
            _exit(1);
        }
        await(child);
        FREE(block);
    }
    in_parent(33);
    leave_all();
    say();
    execl(arguments[0], arguments[0], "forks", NULL);
}
extern char **environ;
ALONE static void spawns(void) {
    char *const argv[] = {arguments[0], (char *)"forks", NULL};
    for (int i = 0; i < 3; i++) {
        pid_t child;
        leaks(5);
        if (posix_spawn(&child, arguments[0], NULL, NULL, argv, environ)) fail("no child\n");
        await(child);
    }
}
// A fork while other threads allocate: the child has one thread, and blocks whose owners it lacks.
static int stop;
static void *works(void *n) {
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        void *block = malloc((size_t)n);
        __asm__ volatile("" ::"r"(block) : "memory");
        free(block);
        // Not in libc all the time: a fork waits for that.
        for (volatile int i = 0; i < 2000; i++) {
        }
    }
    return NULL;
}
ALONE static void forks_beside_threads(void) {
    pthread_t threads[3];
    for (size_t i = 0; i < 3; i++) pthread_create(&threads[i], NULL, works, (void *)(i * 100 + 1));
    for (int i = 0; i < 10; i++) {
        void *block = leaks(64);
        pid_t child = fork();
        if (child == 0) {
            begin_anew();
            FREE(block);
            for (size_t j = 0; j < 20; j++) in_child(j);
            say();
            _exit(0);
        }
        await(child);
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (size_t i = 0; i < 3; i++) pthread_join(threads[i], NULL);
}

static const struct scenario all[] = {
    {"forks", forks},   {"generations", generations}, {"execs", execs},
    {"spawns", spawns}, {"forks_beside_threads", forks_beside_threads}, {NULL, NULL},
};

int main(int argc, char **argv) { return run_scenario(all, argc, argv); }
