// Functions that are bound to threads, and a loop that must not wait. Arguments: what is planted (clean, thread, later: from SIGUSR1 on, deep,
// handler, loop, stop; a path: from SIGUSR1 on, that library, which was loaded once, is closed), and for stop a file, which says how far the
// program is. Begins with a line; ends on SIGTERM, with the least and the most ns that `slow` has taken.
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#define KEEP __attribute__((noinline, noclone))
#define UI __attribute__((section("ui_code")))

static volatile int state;
static volatile sig_atomic_t over, go;
static long least = -1, most;
static int progress = -1;

static void say(const char *how_far) {
    if (progress >= 0) pwrite(progress, how_far, 6, 0);
}

UI KEEP void draw(int n) { say("inside"); state = state + n; }
UI KEEP void paint(int n) { draw(n); state = state + 1; }

KEEP void pause_ms(int n) {
    struct timespec t = {n / 1000, n % 1000 * 1000000L}, left;
    while (nanosleep(&t, &left) && !over) t = left;
}
KEEP void quick(void) { state = state + 1; }
KEEP void slow(int n) { pause_ms(n); state = state + 1; }
KEEP long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}
KEEP void turn(int n) {
    quick();
    if (n) {
        long begun = now();
        slow(n);
        long took = now() - begun;
        if (!over && (least < 0 || took < least)) least = took;
        if (took > most) most = took;
    }
    quick();
    state = state + 1;
}
KEEP void handler(int n) { (void)n; draw(2); state = state + 1; }
KEEP int descend(int n) {
    volatile char room[256];
    room[0] = n;
    if (n == 0) draw(3);
    int sum = n == 0 ? 0 : descend(n - 1);
    return sum + room[0];
}
KEEP void job(const char *planted) {
    if (!strcmp(planted, "thread")) paint(1);
    if (!strcmp(planted, "deep")) descend(200);
    if (!strcmp(planted, "handler")) raise(SIGUSR2);
    state = state + 1;
}
KEEP void *body(void *planted) {
    prctl(PR_SET_NAME, "worker-1");
    job(planted);
    state = state + 1;
    return 0;
}
static void end(int n) { (void)n; over = 1; }
static void begin(int n) { (void)n; go = 1; }

int main(int argc, char **argv) {
    char *planted = argc > 1 ? argv[1] : "clean";
    if (argc > 2) progress = open(argv[2], O_WRONLY | O_CREAT | O_TRUNC, 0600);
    signal(SIGTERM, end);
    signal(SIGUSR1, begin);
    signal(SIGUSR2, handler);
    puts("begun");
    fflush(stdout);
    while (!over) {
        if (!strcmp(planted, "stop")) {
            if (go) {
                go = 0;
                say("before");
                paint(1);
                say("after ");
            }
        } else {
            pthread_t t;
            if (go && !strcmp(planted, "later")) planted = "thread";
            if (go && *planted == '/') {
                go = 0;
                void *library = dlopen(planted, RTLD_NOW | RTLD_NOLOAD);
                // It was loaded once before.
                puts(library && !dlclose(library) && !dlclose(library) ? "closed" : "not closed");
            }
            if (!pthread_create(&t, 0, body, planted)) pthread_join(t, 0);
            paint(1);
            turn(strcmp(planted, "loop") ? 0 : 20);
        }
        pause_ms(2);
    }
    printf("%ld %ld\n", least, most);
    return 0;
}
