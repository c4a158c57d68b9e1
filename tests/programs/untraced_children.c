/* untraced_children.c - makes children with CLONE_UNTRACED, by each call that takes flags, and looks at what each side finds in its
 * registers and in its memory afterwards.
 * Usage: untraced_children. Prints a line for each; all end in "0 same same", where a child could open a file. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct clone_args constant = {.flags = CLONE_UNTRACED, .exit_signal = SIGCHLD};

/* The first argument is looked at after the call: bit 6 of the child's status says that it is another one, or what it points to is. */
static void look(const char *what, long nr, uint64_t first, long size, const struct clone_args *memory)
{
    struct clone_args before = memory ? *memory : constant;
    register long r10 __asm__("r10") = 0;
    register long r8 __asm__("r8") = 0;
    uint64_t rdi = first;
    long ret = nr;
    __asm__ volatile("syscall" : "+a"(ret), "+D"(rdi) : "S"(size), "d"(0L), "r"(r10), "r"(r8) : "rcx", "r11", "memory");
    int other = rdi != first || (memory && memcmp(memory, &before, sizeof before));
    if (ret == 0) {
        int fd = open("/etc/passwd", O_RDONLY);
        _exit((fd < 0 ? errno : 0) | other << 6);
    }
    int status = 0;
    if (ret > 0)
        waitpid(ret, &status, __WALL);
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    printf("%s: %ld %d %s %s\n", what, ret < 0 ? ret : 0, code & ~64, code & 64 ? "other" : "same", other ? "other" : "same");
}

static void look32(void)
{
    uint64_t rbx = CLONE_UNTRACED | SIGCHLD;
    long ret = 120;
    __asm__ volatile("int $0x80" : "+a"(ret), "+b"(rbx) : "c"(0L), "d"(0L), "S"(0L), "D"(0L) : "r8", "r9", "r10", "r11", "memory");
    int other = rbx != (CLONE_UNTRACED | SIGCHLD);
    if (ret == 0)
        _exit((open("/etc/passwd", O_RDONLY) < 0 ? errno : 0) | other << 6);
    int status = 0;
    if (ret > 0)
        waitpid(ret, &status, __WALL);
    int code = WEXITSTATUS(status);
    printf("clone of 32 bits: %d %s %s\n", code & ~64, code & 64 ? "other" : "same", other ? "other" : "same");
}

int main(void)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    signal(SIGUSR1, SIG_IGN);
    look("clone", SYS_clone, CLONE_UNTRACED | SIGCHLD, 0, NULL);
    look("clone, another signal", SYS_clone, CLONE_UNTRACED | SIGUSR1, 0, NULL);
    look("clone that is refused", SYS_clone, CLONE_UNTRACED | CLONE_THREAD, 0, NULL);
    struct clone_args args = constant;
    look("clone3", SYS_clone3, (uintptr_t)&args, sizeof args, &args);
    look("clone3, read-only", SYS_clone3, (uintptr_t)&constant, sizeof constant, &constant);
    struct clone_args *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    *shared = constant;
    look("clone3, shared", SYS_clone3, (uintptr_t)shared, sizeof args, shared);
    args.exit_signal = 1000;
    look("clone3 that is refused", SYS_clone3, (uintptr_t)&args, sizeof args, &args);
    look32();
    return 0;
}
