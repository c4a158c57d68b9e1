// Allows itself little: a call that is not in the list ends it. With an argument, it allows what the agent needs for records, too.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define ALLOW(n) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, n, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
int work(int n) { return n * 3 + 7; }

int main(int argc, char **argv) {
    (void)argv;
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(SYS_write), ALLOW(SYS_exit_group), ALLOW(SYS_newfstatat), ALLOW(SYS_fstat), ALLOW(SYS_brk),
        ALLOW(SYS_rt_sigprocmask), ALLOW(SYS_futex), ALLOW(SYS_clock_gettime), ALLOW(SYS_mmap),
        ALLOW(argc > 1 ? SYS_gettid : SYS_write), ALLOW(argc > 1 ? SYS_getpid : SYS_write),
        ALLOW(argc > 1 ? SYS_getrlimit : SYS_write), ALLOW(argc > 1 ? SYS_tgkill : SYS_write),
        ALLOW(argc > 1 ? SYS_nanosleep : SYS_write), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 1;
    long sum = 0;
    for (int i = 0; i < 100000; i++) sum += work(i);
    printf("%ld\n", sum);
}
