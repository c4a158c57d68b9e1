/* asks_tracer.c - has a seccomp filter that leaves getppid, openat and clone to a tracer (SECCOMP_RET_TRACE). Without one, they fail.
 * Usage: asks_tracer DATA. Prints the result of each call, of the process and of a child. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ASK(nr) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE | data)

static long call(long nr, long a, long b)
{
    long ret;
    __asm__ volatile("syscall" : "=a"(ret) : "a"(nr), "D"(a), "S"(b), "d"(0L) : "rcx", "r11", "memory");
    return ret;
}

static void print(void)
{
    long parent = call(SYS_getppid, 0, 0), file = call(SYS_openat, AT_FDCWD, (long)"/etc/passwd");
    long child = call(SYS_clone, SIGCHLD, 0), own = call(SYS_getpid, 0, 0);
    printf("getppid %ld openat %ld clone %ld getpid %d\n", parent, file, child, own > 0);
}

int main(int argc, char **argv)
{
    unsigned data = argc > 1 ? strtoul(argv[1], NULL, 0) & SECCOMP_RET_DATA : 0;
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ASK(SYS_getppid), ASK(SYS_openat), ASK(SYS_clone), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    setvbuf(stdout, NULL, _IONBF, 0);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        return 3;
    print();
    pid_t child = vfork();
    if (child == 0) {
        print();
        _exit(0);
    }
    waitpid(child, NULL, 0);
    print();
    return 0;
}
