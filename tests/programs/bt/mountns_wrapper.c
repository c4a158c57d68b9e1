/* mountns_wrapper PROGRAM: runs a copy of a program beside it, in a directory that only its own mount namespace has. */
#define _GNU_SOURCE
#include <libgen.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIR "/tmp/bpftrace-unshare-mountns-test"

int main(int argc, char **argv)
{
	char own[PATH_MAX] = "", command[2 * PATH_MAX], copy[PATH_MAX];
	if (argc < 2 || readlink("/proc/self/exe", own, sizeof own - 1) < 0)
		return 1;
	mkdir(DIR, 0755);
	if (unshare(CLONE_NEWNS) || mount(0, "/", 0, MS_REC | MS_PRIVATE, 0) || mount("none", DIR, "tmpfs", 0, 0))
		return 1;
	snprintf(command, sizeof command, "cp %s/%s " DIR, dirname(own), argv[1]);
	snprintf(copy, sizeof copy, DIR "/%s", argv[1]);
	if (system(command))
		return 1;
	execl(copy, copy, NULL);
	return 1;
}
