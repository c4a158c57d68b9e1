// Reads a file and looks for another one by io_uring, without a library.
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct io_uring_params params;
static struct io_uring_sqe *entries;
static char *queue;
static int ring;

static void submit(int op, int fd, const void *addr, unsigned len) {
    unsigned *tail = (unsigned *)(queue + params.sq_off.tail), at = *tail % params.sq_entries;
    unsigned *array = (unsigned *)(queue + params.sq_off.array);
    memset(&entries[at], 0, sizeof entries[at]);
    entries[at].opcode = op;
    entries[at].fd = fd;
    entries[at].addr = (uintptr_t)addr;
    entries[at].len = len;
    array[at] = at;
    __atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
    syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0);
}

int main(void) {
    static char buffer[4096];
    ring = syscall(SYS_io_uring_setup, 8, &params);
    if (ring < 0) return perror("io_uring_setup"), 1;
    int access = PROT_READ | PROT_WRITE;
    queue = mmap(NULL, params.sq_off.array + 4 * params.sq_entries, access, MAP_SHARED, ring, IORING_OFF_SQ_RING);
    entries = mmap(NULL, params.sq_entries * sizeof *entries, access, MAP_SHARED, ring, IORING_OFF_SQES);
    int fd = open("/etc/passwd", O_RDONLY);
    submit(IORING_OP_READ, fd, buffer, 64);
    submit(IORING_OP_OPENAT, AT_FDCWD, "/etc/ring.conf", 0);
    return 0;
}
