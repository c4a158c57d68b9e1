/*
 * Makes objects of the kernel and lets them go, as its standard input says: a word and a number in a line, and "done" after each.
 *   files N, pipes N, faults N    N descriptors: of /dev/null, of N pipes, of N userfaultfd
 *   names N                       N files in the working directory, held by their names only
 *   pages N                       N pages of memory, written to
 *   close 0                       all of that away
 *   storm N                       4 threads open and close a userfaultfd N times each
 *   flood N                       the same without an answer, until the next line
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOST = 40000, THREADS = 4 };
static int fds[MOST];
static int open_fds, names;
static void *memory;
static size_t bytes;
static long rounds;
static atomic_int ends;

static int fault(void) { return syscall(SYS_userfaultfd, O_CLOEXEC); }

static void keep(int fd) {
	if (fd < 0 || open_fds == MOST) {
		perror("no descriptor");
		exit(1);
	}
	fds[open_fds++] = fd;
}

static void *storm(void *unused) {
	for (long i = 0; i < rounds && !ends; i++)
		close(fault());
	return unused;
}

int main(void) {
	struct rlimit files = {MOST + 100, MOST + 100};
	setrlimit(RLIMIT_NOFILE, &files);
	char line[64], word[64], name[64];
	pthread_t threads[THREADS];
	int running = 0;
	printf("%d\n", getpid());
	fflush(stdout);
	while (fgets(line, sizeof line, stdin)) {
		long n = 0;
		sscanf(line, "%63s %ld", word, &n);
		if (running) {
			ends = 1;
			for (int i = 0; i < THREADS; i++)
				pthread_join(threads[i], 0);
			ends = running = 0;
		}
		if (!strcmp(word, "files"))
			for (long i = 0; i < n; i++)
				keep(open("/dev/null", O_RDONLY));
		if (!strcmp(word, "pipes"))
			for (long i = 0; i < n; i++) {
				int ends[2];
				if (pipe(ends))
					exit(1);
				keep(ends[0]);
				keep(ends[1]);
			}
		if (!strcmp(word, "faults"))
			for (long i = 0; i < n; i++)
				keep(fault());
		if (!strcmp(word, "names"))
			for (names = 0; names < n; names++) {
				sprintf(name, "name-%d", names);
				close(open(name, O_CREAT | O_WRONLY, 0600));
			}
		if (!strcmp(word, "pages")) {
			bytes = n * 4096;
			memory = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			madvise(memory, bytes, MADV_NOHUGEPAGE);
			for (long i = 0; i < n; i++)
				((char *)memory)[i * 4096] = 1;
		}
		if (!strcmp(word, "close")) {
			while (open_fds)
				close(fds[--open_fds]);
			while (names) {
				sprintf(name, "name-%d", --names);
				unlink(name);
			}
			if (memory)
				munmap(memory, bytes);
			memory = 0;
		}
		if (!strcmp(word, "storm") || !strcmp(word, "flood")) {
			rounds = n;
			for (int i = 0; i < THREADS; i++)
				pthread_create(&threads[i], 0, storm, 0);
			running = 1;
			if (!strcmp(word, "storm")) {
				for (int i = 0; i < THREADS; i++)
					pthread_join(threads[i], 0);
				running = 0;
			}
		}
		printf("done\n");
		fflush(stdout);
	}
	return 0;
}
