// Operations of io_uring by raw calls (no library), which it counts itself.
//
//   uring kinds          operations of many kinds, a few of each
//   uring load N         N operations in batches: nop, read, write
//   uring sqpoll N       the same, submitted by a thread of the kernel (IORING_SETUP_SQPOLL)
//   uring overflow N     N nops on a completion queue of 8 entries, which is read when all are submitted
//   uring flood N        N operations that never complete
//   uring files FILE     opens FILE, reads and closes it, with a socket beside it; then the same in the ring's own table of files
//   uring wait FIFO      a read that does not complete before FIFO is written, and a nop for each byte of its input
//
// Prints `NAME SUBMITTED COMPLETED` of each operation: what it has submitted, and what it has read from the completion queue.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { KINDS = 256, SKIP = IOSQE_CQE_SKIP_SUCCESS };

struct ring {
    int fd;
    unsigned flags, entries, to_submit;
    _Atomic unsigned *sq_head, *sq_tail, *sq_flags, *cq_head, *cq_tail;
    unsigned sq_mask, cq_mask, *array;
    struct io_uring_sqe *sqes;
    struct io_uring_cqe *cqes;
};

static struct ring ring;
static long submitted[KINDS], completed[KINDS], outstanding;
static const char *names[KINDS];

static void die(const char *what) {
    perror(what);
    exit(1);
}

static void *map(size_t size, off_t at) {
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring.fd, at);
    if (p == MAP_FAILED) die("mmap");
    return p;
}

static void setup(unsigned entries, unsigned flags, unsigned cq_entries) {
    struct io_uring_params p = {.flags = flags, .cq_entries = cq_entries, .sq_thread_idle = 200};
    if (cq_entries) p.flags |= IORING_SETUP_CQSIZE;
    ring.fd = syscall(SYS_io_uring_setup, entries, &p);
    if (ring.fd < 0) die("io_uring_setup");
    char *sq = map(p.sq_off.array + p.sq_entries * sizeof(unsigned), IORING_OFF_SQ_RING);
    char *cq = map(p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe), IORING_OFF_CQ_RING);
    ring.sqes = map(p.sq_entries * sizeof(struct io_uring_sqe), IORING_OFF_SQES);
    ring.flags = flags;
    ring.entries = p.sq_entries;
    ring.sq_head = (void *)(sq + p.sq_off.head);
    ring.sq_tail = (void *)(sq + p.sq_off.tail);
    ring.sq_flags = (void *)(sq + p.sq_off.flags);
    ring.sq_mask = *(unsigned *)(sq + p.sq_off.ring_mask);
    ring.array = (void *)(sq + p.sq_off.array);
    ring.cq_head = (void *)(cq + p.cq_off.head);
    ring.cq_tail = (void *)(cq + p.cq_off.tail);
    ring.cq_mask = *(unsigned *)(cq + p.cq_off.ring_mask);
    ring.cqes = (void *)(cq + p.cq_off.cqes);
}

static struct io_uring_sqe *entry(int op, int fd, const void *addr, unsigned len, uint64_t off) {
    unsigned tail = *ring.sq_tail, at = tail & ring.sq_mask;
    struct io_uring_sqe *sqe = &ring.sqes[at];
    memset(sqe, 0, sizeof *sqe);
    sqe->opcode = op;
    sqe->fd = fd;
    sqe->addr = (uintptr_t)addr;
    sqe->len = len;
    sqe->off = off;
    static uint64_t number;
    sqe->user_data = (uint64_t)op << 56 | ++number;
    ring.array[at] = at;
    atomic_store_explicit(ring.sq_tail, tail + 1, memory_order_release);
    ring.to_submit++;
    submitted[op]++;
    outstanding++;
    return sqe;
}

// Submits what there is, and waits until so many completions are there.
static void enter(unsigned wait) {
    unsigned flags = wait ? IORING_ENTER_GETEVENTS : 0, n = ring.to_submit;
    if (ring.flags & IORING_SETUP_SQPOLL) {
        atomic_thread_fence(memory_order_seq_cst);
        if (*ring.sq_flags & IORING_SQ_NEED_WAKEUP) flags |= IORING_ENTER_SQ_WAKEUP;
    }
    while (n || wait || flags) {
        long done = syscall(SYS_io_uring_enter, ring.fd, n, wait, flags, NULL, 0);
        if (done < 0 && errno != EINTR && errno != EBUSY) die("io_uring_enter");
        n = ring.flags & IORING_SETUP_SQPOLL || done < 0 ? 0 : n - (unsigned)done;
        if (!n) break;
    }
    ring.to_submit = 0;
}

// Reads what has completed; returns how many.
static int reap(void) {
    int n = 0;
    unsigned head = *ring.cq_head;
    for (; head != atomic_load_explicit(ring.cq_tail, memory_order_acquire); head++, n++) {
        struct io_uring_cqe *cqe = &ring.cqes[head & ring.cq_mask];
        completed[cqe->user_data >> 56]++;
        if (!(cqe->flags & IORING_CQE_F_MORE)) outstanding--;
        if (getenv("URING_SAYS")) printf("# %llx %d %x\n", (unsigned long long)cqe->user_data, cqe->res, cqe->flags);
    }
    atomic_store_explicit(ring.cq_head, head, memory_order_release);
    return n;
}

static void finish(void) {
    while (outstanding > 0) {
        enter(1);
        reap();
    }
}

static int scratch_file(void) {
    int fd = open(".", O_TMPFILE | O_RDWR, 0600);
    if (fd < 0) fd = memfd_create("uring", 0);
    if (fd < 0 || ftruncate(fd, 1 << 16)) die("a file");
    return fd;
}

static char buffer[4096];

static void kinds(void) {
    setup(64, 0, 0);
    int fd = scratch_file(), ends[2];
    if (pipe(ends)) die("pipe");
    for (int i = 0; i < 3; i++) entry(IORING_OP_NOP, -1, NULL, 0, 0);
    entry(IORING_OP_WRITE, fd, buffer, 100, 0);
    finish();
    entry(IORING_OP_READ, fd, buffer, 100, 0);
    entry(IORING_OP_READ, fd, buffer, 4096, 50)->flags |= IOSQE_ASYNC;
    entry(IORING_OP_READ, 999, buffer, 10, 0);
    entry(IORING_OP_OPENAT, AT_FDCWD, "/no such file", 0, 0)->open_flags = O_RDONLY;
    finish();

    // Two at once with the same user_data.
    struct __kernel_timespec soon = {.tv_nsec = 1000000};
    entry(IORING_OP_TIMEOUT, -1, &soon, 1, 0)->user_data = (uint64_t)IORING_OP_TIMEOUT << 56;
    entry(IORING_OP_TIMEOUT, -1, &soon, 1, 0)->user_data = (uint64_t)IORING_OP_TIMEOUT << 56;
    finish();

    // The second is cancelled because the first fails.
    entry(IORING_OP_FSYNC, 999, NULL, 0, 0)->flags |= IOSQE_IO_LINK;
    entry(IORING_OP_FALLOCATE, fd, (void *)10, 0, 0);
    finish();

    // One submission, four completions: three times readable, then removed.
    struct io_uring_sqe *poll = entry(IORING_OP_POLL_ADD, ends[0], NULL, IORING_POLL_ADD_MULTI, 0);
    poll->poll32_events = POLLIN;
    uint64_t polled = poll->user_data;
    enter(0);
    for (int i = 1; i <= 3; i++) {
        if (write(ends[1], "x", 1) != 1 || read(ends[0], buffer, 1) != 1) die("pipe");
        while (completed[IORING_OP_POLL_ADD] < i) {
            enter(1);
            reap();
        }
    }
    entry(IORING_OP_POLL_REMOVE, -1, (void *)polled, 0, 0);
    finish();

    // A registered file.
    int files[2] = {-1, fd};
    if (syscall(SYS_io_uring_register, ring.fd, IORING_REGISTER_FILES, files, 2)) die("io_uring_register");
    entry(IORING_OP_READV, 1, &(struct { void *base; size_t len; }){buffer, 7}, 1, 0)->flags |= IOSQE_FIXED_FILE;
    finish();

    // No completion is posted, and one for what the kernel does not know.
    entry(IORING_OP_FADVISE, fd, NULL, 0, 0)->flags |= SKIP;
    outstanding--;
    entry(IORING_OP_SHUTDOWN, 999, NULL, 0, 0)->flags |= SKIP;
    entry(200, -1, NULL, 0, 0);
    finish();

    // Never completes.
    entry(IORING_OP_POLL_ADD, ends[0], NULL, 0, 0)->poll32_events = POLLIN;
    enter(0);
    reap();
}

static void load(long n, unsigned flags) {
    setup(64, flags, 0);
    int fd = scratch_file();
    for (long i = 0; i < n;) {
        int batch = 0;
        for (; batch < 48 && i < n; batch++, i++) {
            int op = i % 3 == 0 ? IORING_OP_NOP : i % 3 == 1 ? IORING_OP_WRITE : IORING_OP_READ;
            entry(op, op == IORING_OP_NOP ? -1 : fd, buffer, op == IORING_OP_NOP ? 0 : 64, 64 * (i % 512));
        }
        while (outstanding > 0) {
            enter(1);
            reap();
        }
    }
}

static void overflow(long n) {
    setup(8, 0, 8);
    for (long i = 0; i < n;) {
        for (int batch = 0; batch < 8 && i < n; batch++, i++) entry(IORING_OP_NOP, -1, NULL, 0, 0);
        enter(0);
        // Without this the kernel takes no more.
        if (i % 24 == 0) finish();
    }
    finish();
}

static void flood(long n) {
    setup(256, 0, 0);
    int ends[2];
    if (pipe(ends)) die("pipe");
    for (long i = 1; i <= n; i++) {
        entry(IORING_OP_POLL_ADD, ends[0], NULL, 0, 0)->poll32_events = POLLIN;
        if (i % 256 == 0 || i == n) enter(0);
    }
}

// Does one operation: its result.
static int one(struct io_uring_sqe *sqe) {
    (void)sqe;
    enter(1);
    int result = ring.cqes[*ring.cq_head & ring.cq_mask].res;
    reap();
    return result;
}

static void files(const char *path) {
    setup(8, 0, 0);
    int fd = one(entry(IORING_OP_OPENAT, AT_FDCWD, path, 0, 0));
    int other = one(entry(IORING_OP_SOCKET, AF_UNIX, NULL, 0, SOCK_STREAM));
    if (fd < 0 || other < 0 || read(fd, buffer, 1) != 1 || read(other, buffer, 1) != -1) die("files");
    one(entry(IORING_OP_CLOSE, fd, NULL, 0, 0));
    one(entry(IORING_OP_CLOSE, other, NULL, 0, 0));
    if (read(fd, buffer, 2) != -1) die("closed");
    int table[1] = {-1};
    if (syscall(SYS_io_uring_register, ring.fd, IORING_REGISTER_FILES, table, 1)) die("io_uring_register");
    struct io_uring_sqe *direct = entry(IORING_OP_OPENAT, AT_FDCWD, path, 0, 0);
    direct->file_index = 1;
    if (one(direct) != 0) die("direct");
    struct io_uring_sqe *from = entry(IORING_OP_READ, 0, buffer, 1, 0);
    from->flags |= IOSQE_FIXED_FILE;
    if (one(from) != 1) die("registered");
}

static void wait_for(const char *path) {
    setup(8, 0, 0);
    int fd = open(path, O_RDWR);
    if (fd < 0) die(path);
    entry(IORING_OP_READ, fd, buffer, 1, 0);
    enter(0);
    for (char byte; read(0, &byte, 1) == 1;) {
        entry(IORING_OP_NOP, -1, NULL, 0, 0);
        enter(1);
        reap();
    }
    finish();
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "kinds";
    long n = argc > 2 ? atol(argv[2]) : 1000;
    if (!strcmp(what, "kinds")) kinds();
    else if (!strcmp(what, "load")) load(n, 0);
    else if (!strcmp(what, "sqpoll")) load(n, IORING_SETUP_SQPOLL);
    else if (!strcmp(what, "overflow")) overflow(n);
    else if (!strcmp(what, "flood")) flood(n);
    else if (!strcmp(what, "files")) files(argv[2]);
    else if (!strcmp(what, "wait")) wait_for(argv[2]);
    else return 2;
    names[IORING_OP_NOP] = "nop", names[IORING_OP_READ] = "read", names[IORING_OP_WRITE] = "write";
    names[IORING_OP_READV] = "readv", names[IORING_OP_OPENAT] = "openat", names[IORING_OP_TIMEOUT] = "timeout";
    names[IORING_OP_FSYNC] = "fsync", names[IORING_OP_FALLOCATE] = "fallocate";
    names[IORING_OP_POLL_ADD] = "poll_add", names[IORING_OP_POLL_REMOVE] = "poll_remove";
    names[IORING_OP_FADVISE] = "fadvise", names[IORING_OP_SHUTDOWN] = "shutdown", names[200] = "other";
    names[IORING_OP_SOCKET] = "socket", names[IORING_OP_CLOSE] = "close";
    for (int op = 0; op < KINDS; op++)
        if (submitted[op]) printf("%s %ld %ld\n", names[op] ? names[op] : "?", submitted[op], completed[op]);
    return 0;
}
