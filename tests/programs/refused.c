/* refused.c - calls that seccomp(2) answers before they begin.
 * Usage: refused errno | fork | exec | trap | kill | kill-thread | notify
 * getppid and open of /refused fail (in this process, a child, or the next program), raise SIGSYS, end the process or the thread, or are
 * answered by another thread. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int listener = -1;
static pthread_barrier_t barrier;

static void handler(int signal) { (void)signal; }

static void refuse(unsigned action, unsigned flags)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_open, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, action),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { sizeof code / sizeof *code, code };
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        _exit(3);
    listener = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
    if (listener < 0)
        _exit(4);
}

static void calls(void)
{
    char path[] = "/refused";
    syscall(SYS_getppid);
    syscall(SYS_getuid);
    syscall(SYS_open, path, O_RDONLY);
    syscall(SYS_getgid);
}

static void *serve(void *unused)
{
    struct seccomp_notif request;
    struct seccomp_notif_resp response;
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 2; i++) {
        memset(&request, 0, sizeof request);
        memset(&response, 0, sizeof response);
        if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &request))
            _exit(5);
        response.id = request.id;
        response.val = 4242;
        if (ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response))
            _exit(6);
    }
    return unused;
}

static void *die(void *unused)
{
    calls();
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    if (argc < 2)
        return 2;
    if (strcmp(argv[1], "errno") == 0) {
        refuse(SECCOMP_RET_ERRNO | 42, 0);
        calls();
    } else if (strcmp(argv[1], "fork") == 0) {
        refuse(SECCOMP_RET_ERRNO | 42, 0);
        if (fork() == 0) {
            calls();
            _exit(0);
        }
        wait(NULL);
    } else if (strcmp(argv[1], "exec") == 0) {
        refuse(SECCOMP_RET_ERRNO | 42, 0);
        execl(argv[0], argv[0], "calls", (char *)NULL);
    } else if (strcmp(argv[1], "calls") == 0) {
        calls();
    } else if (strcmp(argv[1], "trap") == 0) {
        signal(SIGSYS, handler);
        refuse(SECCOMP_RET_TRAP, 0);
        calls();
    } else if (strcmp(argv[1], "kill") == 0) {
        refuse(SECCOMP_RET_KILL_PROCESS, 0);
        calls();
    } else if (strcmp(argv[1], "kill-thread") == 0) {
        refuse(SECCOMP_RET_KILL_THREAD, 0);
        pthread_create(&thread, NULL, die, NULL);
        pthread_join(thread, NULL);
    } else if (strcmp(argv[1], "notify") == 0) {
        pthread_barrier_init(&barrier, NULL, 2);
        pthread_create(&thread, NULL, serve, NULL);
        refuse(SECCOMP_RET_USER_NOTIF, SECCOMP_FILTER_FLAG_NEW_LISTENER);
        pthread_barrier_wait(&barrier);
        calls();
        pthread_join(thread, NULL);
    }
    return 0;
}
