// A copy program by liburing: reads and writes of 16 KiB, several at a time.
//
//   uring_copy FROM TO
//
// Prints `NAME SUBMITTED COMPLETED BYTES` of reads and writes, as it has counted them.
#include <fcntl.h>
#include <liburing.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { DEPTH = 8, BLOCK = 16 << 10 };

struct block {
    long at;
    int writes;
    unsigned len;
    char bytes[BLOCK];
};

static struct count {
    long submitted, completed, bytes;
} counts[2];

static void die(const char *what, int error) {
    fprintf(stderr, "%s: %s\n", what, strerror(error));
    exit(1);
}

static void queue(struct io_uring *ring, int fd, struct block *b) {
    struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
    if (b->writes) io_uring_prep_write(sqe, fd, b->bytes, b->len, b->at);
    else io_uring_prep_read(sqe, fd, b->bytes, BLOCK, b->at);
    io_uring_sqe_set_data(sqe, b);
    counts[b->writes].submitted++;
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    static struct block blocks[DEPTH];
    int fds[2] = {open(argv[1], O_RDONLY), open(argv[2], O_WRONLY | O_CREAT | O_TRUNC, 0600)};
    struct stat st;
    if (fds[0] < 0 || fds[1] < 0 || fstat(fds[0], &st)) die("open", 2);
    struct io_uring ring;
    int error = io_uring_queue_init(2 * DEPTH, &ring, 0);
    if (error) die("io_uring_queue_init", -error);
    long next = 0, outstanding = 0;
    for (int i = 0; i < DEPTH && next < st.st_size; i++, next += BLOCK, outstanding++) {
        blocks[i].at = next;
        queue(&ring, fds[0], &blocks[i]);
    }
    while (outstanding) {
        if ((error = io_uring_submit_and_wait(&ring, 1)) < 0) die("io_uring_submit_and_wait", -error);
        struct io_uring_cqe *cqe;
        while (!io_uring_peek_cqe(&ring, &cqe)) {
            struct block *b = io_uring_cqe_get_data(cqe);
            if (cqe->res < 0) die(b->writes ? "write" : "read", -cqe->res);
            counts[b->writes].completed++;
            counts[b->writes].bytes += cqe->res;
            io_uring_cqe_seen(&ring, cqe);
            if (!b->writes) {
                b->len = cqe->res;
                b->writes = 1;
                queue(&ring, fds[1], b);
            } else if (next < st.st_size) {
                b->writes = 0;
                b->at = next;
                next += BLOCK;
                queue(&ring, fds[0], b);
            } else {
                outstanding--;
            }
        }
    }
    for (int i = 0; i < 2; i++)
        printf("%s %ld %ld %ld\n", i ? "write" : "read", counts[i].submitted, counts[i].completed, counts[i].bytes);
    return 0;
}
