/* Calls that are open when the program ends: those of the first thread, and one of another thread, which waits. Argument: how it ends. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEEP __attribute__((noinline, noclone))

static volatile int leaves;

KEEP void leaf(void) { leaves++; }

KEEP void ends(const char *how) {
    leaf();
    usleep(200000);
    if (!strcmp(how, "exit")) exit(3);
    if (!strcmp(how, "_exit")) _exit(3);
    if (!strcmp(how, "syscall")) syscall(SYS_exit_group, 3);
    if (!strcmp(how, "instruction")) __asm__ volatile("syscall" ::"a"(SYS_exit_group), "D"(3));
    if (!strcmp(how, "kill")) kill(getpid(), SIGKILL);
    if (!strcmp(how, "abort")) abort();
    if (!strcmp(how, "exec")) execl("/bin/true", "true", (char *)0);
    leaf();
}

KEEP void middle(const char *how) {
    ends(how);
    leaf();
}

KEEP void *waits(void *unused) {
    leaf();
    pause();
    leaf();
    return unused;
}

int main(int argc, char **argv) {
    pthread_t thread;
    if (argc < 2 || pthread_create(&thread, 0, waits, 0)) return 1;
    middle(argv[1]);
    return 0;
}
