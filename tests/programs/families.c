/* families.c - at least one call of many families of decoders, to compare with strace: files, processes, memory,
 * terminals, System V. It needs no rights and makes the same calls each time; calls that a kernel or a sandbox refuses
 * are made all the same. families_net.c has sockets, waiting, signals and timers.
 * Usage: families [DIRECTORY], default the current one; files are created in it and removed again.
 * Certain calls: openat, openat2, newfstatat, statx, access, faccessat2, readlink, symlink, link, rename, renameat2,
 * chmod, fchmodat, chown, utimensat, truncate, mkdir, mknod, setxattr, getxattr, listxattr, rmdir, unlink, unlinkat;
 * writev, pwritev2, preadv, pread64, lseek, fallocate, fadvise64, fcntl (locks, flags, pipe size, seals), flock, fsync,
 * pipe2, FIONREAD, tee, splice, vmsplice, sendfile, copy_file_range, ftruncate; getdents64, getcwd, fchdir, statfs, umask,
 * inotify; uname, sysinfo, getrusage, prlimit64, times, prctl, sched_get*, getpriority, getgroups, getresuid, getpgid,
 * capget, kcmp; clone3, waitid, wait4, kill; mmap, madvise, mincore, mlock, munlock, mprotect, msync, mremap, munmap, memfd_create,
 * membarrier; TIOCSWINSZ, TIOCGWINSZ, TIOCGPTN, TIOCSPTLCK, TCGETS, TCSETS of a pseudo-terminal; shmget, semget, msgget
 * and their ends. Exits with 0. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/times.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <termios.h>
#include <unistd.h>

/* Results that do not matter here; the call itself is what is wanted. */
#define MAKE(call) do { if ((long)(call) < 0) refused++; } while (0)
static int refused;

static void names(void)
{
    struct stat status;
    struct statx wide;
    struct open_how how = { .flags = O_RDONLY | O_CLOEXEC, .resolve = RESOLVE_NO_MAGICLINKS };
    struct timespec times[2] = { { 1000000000, 5 }, { 0, UTIME_OMIT } };
    char text[64];
    MAKE(openat(AT_FDCWD, "families.tmp", O_CREAT | O_EXCL | O_WRONLY, 0640));
    MAKE(syscall(SYS_openat2, AT_FDCWD, "families.tmp", &how, sizeof how));
    MAKE(stat("families.tmp", &status));
    MAKE(lstat("families.tmp", &status));
    MAKE(statx(AT_FDCWD, "families.tmp", AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS | STATX_BTIME, &wide));
    MAKE(access("families.tmp", R_OK | W_OK));
    MAKE(faccessat(AT_FDCWD, "families.tmp", X_OK, AT_EACCESS));
    MAKE(symlink("families.tmp", "families.link"));
    MAKE(readlink("families.link", text, sizeof text));
    MAKE(link("families.tmp", "families.hard"));
    MAKE(rename("families.hard", "families.moved"));
    MAKE(syscall(SYS_renameat2, AT_FDCWD, "families.tmp", AT_FDCWD, "families.moved", RENAME_EXCHANGE));
    MAKE(chmod("families.tmp", 0600));
    MAKE(fchmodat(AT_FDCWD, "families.tmp", 0644, 0));
    MAKE(chown("families.tmp", -1, -1));
    MAKE(utimensat(AT_FDCWD, "families.tmp", times, AT_SYMLINK_NOFOLLOW));
    MAKE(truncate("families.tmp", 100));
    MAKE(mkdir("families.dir", 0755));
    MAKE(mknod("families.fifo", S_IFIFO | 0600, 0));
    MAKE(setxattr("families.tmp", "user.trapline", "value", 5, XATTR_CREATE));
    MAKE(getxattr("families.tmp", "user.trapline", text, sizeof text));
    MAKE(listxattr("families.tmp", text, sizeof text));
    MAKE(rmdir("families.dir"));
    MAKE(unlink("families.fifo"));
    MAKE(unlink("families.link"));
    MAKE(unlinkat(AT_FDCWD, "families.moved", 0));
}

static void contents(void)
{
    struct iovec vectors[2] = { { "first", 5 }, { " second", 7 } };
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 10 };
    char text[32], other[32];
    struct iovec into[2] = { { text, 5 }, { other, 7 } };
    int file = open("families.tmp", O_RDWR | O_TRUNC | O_APPEND), ends[2], more[2];
    MAKE(writev(file, vectors, 2));
    MAKE(pwritev2(file, vectors, 2, 0, RWF_DSYNC));
    MAKE(preadv(file, into, 2, 0));
    MAKE(pread(file, text, 4, 2));
    MAKE(lseek(file, 0, SEEK_DATA));
    MAKE(fallocate(file, FALLOC_FL_KEEP_SIZE, 0, 4096));
    MAKE(posix_fadvise(file, 0, 0, POSIX_FADV_SEQUENTIAL));
    MAKE(fcntl(file, F_SETLK, &lock));
    MAKE(fcntl(file, F_GETLK, &lock));
    MAKE(fcntl(file, F_OFD_SETLK, &(struct flock){ .l_type = F_UNLCK }));
    MAKE(fcntl(file, F_GETFL));
    MAKE(fcntl(file, F_SETFL, O_NONBLOCK));
    MAKE(flock(file, LOCK_EX | LOCK_NB));
    MAKE(fsync(file));
    MAKE(pipe2(ends, O_CLOEXEC));
    MAKE(pipe(more));
    MAKE(fcntl(ends[0], F_SETPIPE_SZ, 65536));
    MAKE(write(ends[1], "pipe", 4));
    MAKE(ioctl(ends[0], FIONREAD, &lock.l_pid));
    MAKE(tee(ends[0], more[1], 4, SPLICE_F_NONBLOCK));
    MAKE(splice(ends[0], NULL, more[1], NULL, 2, SPLICE_F_MOVE));
    MAKE(vmsplice(more[1], vectors, 1, 0));
    MAKE(sendfile(more[1], file, &(off_t){ 0 }, 3));
    MAKE(copy_file_range(file, &(off_t){ 0 }, ends[1], NULL, 3, 0));
    MAKE(ftruncate(file, 3));
    MAKE(unlink("families.tmp"));
}

static void directories(void)
{
    char path[512];
    char entries[4096];
    struct statfs space;
    int directory = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), watch = inotify_init1(IN_NONBLOCK);
    MAKE(syscall(SYS_getdents64, directory, entries, sizeof entries));
    MAKE(syscall(SYS_getcwd, path, sizeof path));
    MAKE(fchdir(directory));
    MAKE(statfs("/proc", &space));
    MAKE(umask(022));
    MAKE(inotify_add_watch(watch, "/etc", IN_CREATE | IN_MOVED_TO));
    MAKE(read(watch, path, sizeof path));
    MAKE(inotify_rm_watch(watch, 1));
    MAKE(close(directory));
}

static void process(void)
{
    struct utsname name;
    struct sysinfo info;
    struct rusage usage;
    struct rlimit limit = { 0, 0 };
    struct tms times_used;
    struct sched_param parameters;
    struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
    struct __user_cap_data_struct data[2];
    cpu_set_t cpus;
    uid_t ids[3];
    MAKE(uname(&name));
    MAKE(sysinfo(&info));
    MAKE(getrusage(RUSAGE_SELF, &usage));
    MAKE(setrlimit(RLIMIT_CORE, &limit));
    MAKE(syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, &limit));
    MAKE(times(&times_used));
    MAKE(prctl(PR_SET_NAME, "families"));
    MAKE(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    MAKE(prctl(PR_SET_PDEATHSIG, SIGTERM));
    MAKE(sched_getaffinity(0, sizeof cpus, &cpus));
    MAKE(sched_getparam(0, &parameters));
    MAKE(sched_getscheduler(0));
    MAKE(getpriority(PRIO_PROCESS, 0));
    MAKE(getgroups(0, NULL));
    MAKE(getresuid(&ids[0], &ids[1], &ids[2]));
    MAKE(getpgid(0));
    MAKE(syscall(SYS_capget, &header, data));
    MAKE(syscall(SYS_kcmp, getpid(), getpid(), 0, 0, 0));
}

static void children(void)
{
    struct clone_args args = { .exit_signal = SIGCHLD };
    siginfo_t info = { 0 };
    struct rusage usage;
    int status;
    long child = syscall(SYS_clone3, &args, sizeof args);
    if (child == 0)
        _exit(3);
    MAKE(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT));
    MAKE(wait4((pid_t)child, &status, 0, &usage));
    MAKE(kill((pid_t)child, 0));
}

static void memory(void)
{
    unsigned char resident[2];
    char *map = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    int file = memfd_create("families", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    MAKE(madvise(map, 4096, MADV_DONTNEED));
    MAKE(mincore(map, 8192, resident));
    MAKE(mlock(map, 4096));
    MAKE(munlock(map, 4096));
    MAKE(msync(map, 4096, MS_SYNC));
    map = mremap(map, 8192, 16384, MREMAP_MAYMOVE);
    MAKE(mprotect(map, 4096, PROT_READ | PROT_EXEC));
    MAKE(munmap(map, 16384));
    MAKE(fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL));
    MAKE(syscall(SYS_membarrier, 0, 0, 0));
}

static void terminals(void)
{
    struct winsize size = { 24, 80, 0, 0 };
    struct termios attributes;
    int number, terminal = open("/dev/ptmx", O_RDWR | O_NOCTTY);
    MAKE(ioctl(terminal, TIOCSWINSZ, &size));
    MAKE(ioctl(terminal, TIOCGWINSZ, &size));
    MAKE(ioctl(terminal, TIOCGPTN, &number));
    MAKE(ioctl(terminal, TIOCSPTLCK, &(int){ 0 }));
    MAKE(tcgetattr(terminal, &attributes));
    attributes.c_lflag &= ~ECHO;
    MAKE(tcsetattr(terminal, TCSANOW, &attributes));
}

static void system_v(void)
{
    int shared = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600), semaphores = semget(IPC_PRIVATE, 1, 0600);
    int queue = msgget(IPC_PRIVATE, IPC_CREAT | 0600);
    struct sembuf up = { 0, 1, IPC_NOWAIT };
    struct { long type; char text[4]; } message = { 5, "sysv" };
    void *attached = shmat(shared, NULL, SHM_RDONLY);
    MAKE(semop(semaphores, &up, 1));
    MAKE(msgsnd(queue, &message, 4, IPC_NOWAIT));
    MAKE(msgrcv(queue, &message, 4, 0, IPC_NOWAIT));
    MAKE(shmdt(attached));
    MAKE(shmctl(shared, IPC_RMID, NULL));
    MAKE(semctl(semaphores, 0, IPC_RMID));
    MAKE(msgctl(queue, IPC_RMID, NULL));
}

int main(int argc, char **argv)
{
    if (argc > 1 && chdir(argv[1]) != 0)
        return 1;
    names();
    contents();
    directories();
    process();
    children();
    memory();
    terminals();
    system_v();
    return 0;
}
