// Processes and threads that end in every way while they call functions, and calls that are open at a fork.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define APART __attribute__((noinline, noipa))

APART int work(int n) { return n * 1234567 + 7; }

static void works(int n) {
    for (int i = 0; i < n; i++) work(i);
}

static void *thread(void *n) {
    works((int)(long)n);
    return NULL;
}

static void in_threads(int threads, long n) {
    pthread_t all[16];
    for (int i = 0; i < threads; i++) pthread_create(&all[i], NULL, thread, (void *)n);
    for (int i = 0; i < threads; i++) pthread_join(all[i], NULL);
}

// Returns in the parent and in the child.
APART pid_t forks(void) { return fork(); }

// Is called at three depths when the process forks.
APART pid_t deep(int depth) { return depth ? deep(depth - 1) : forks(); }

static volatile int caught;

static void on_alarm(int n) {
    (void)n;
    // A handler forks, wherever it has come.
    pid_t pid = fork();
    if (pid == 0) {
        works(10);
        _exit(0);
    }
    waitpid(pid, NULL, 0);
    if (++caught < 50) ualarm(300, 0);
}

static int child(int how, char **argv) {
    works(1000);
    switch (how) {
    case 0: _exit(0);
    case 1: kill(getpid(), SIGKILL);
    case 2: in_threads(4, 1000); exit(0);
    case 3: execl("/proc/self/exe", argv[0], "again", NULL);
    case 4: abort();
    default: syscall(SYS_exit_group, 0);
    }
    return 1;
}

int main(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "again")) {
        works(1000);
        return 0;
    }
    if (argc > 2 && !strcmp(argv[1], "library")) {
        // A library that comes, is called, and goes, three times.
        for (int i = 0; i < 3; i++) {
            void *library = dlopen(argv[2], RTLD_NOW);
            if (!library) return 1;
            int (*probed)(int) = (int (*)(int))dlsym(library, "summed_in_library");
            for (int n = 0; n < 1000; n++) probed(n);
            dlclose(library);
        }
        return 0;
    }
    if (argc > 1 && !strcmp(argv[1], "handlers")) {
        signal(SIGALRM, on_alarm);
        ualarm(300, 0);
        long n = 0;
        while (caught < 50) n += work(0) == 7;
        // All calls, those of the children too.
        printf("%ld\n", n + 10 * caught);
        return 0;
        return 0;
    }
    works(1000);
    for (int how = 0; how < 6; how++) {
        pid_t pid = deep(2);
        if (pid == 0) return child(how, argv);
        waitpid(pid, NULL, 0);
        works(10);
    }
    in_threads(16, 1000);
    return 0;
}
