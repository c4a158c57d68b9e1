/* Spends known shares of its time in its functions.
   shares burn N: N rounds, each with three parts of CPU time in three_parts and one in one_part.
   shares sleep N: N rounds, each with 30 ms of sleep in sleeps_long and 10 ms in sleeps_short.
   shares wake N: N times, one thread waits in waits for what another, which sleeps 10 ms, writes in wakes.
   shares forever: sleeps in sleeps_short until it is killed. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long sink;
static int ends[2];
static int rounds;

/* Without the C library's functions, which have no frame pointers. */
static inline long call(long nr, long a, long b, long c)
{
#ifdef __x86_64__
    long r;
    __asm__ volatile("syscall" : "=a"(r) : "a"(nr), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return r;
#else
    return syscall(nr, a, b, c);
#endif
}

static long cpu_time(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}

/* Steps of spin in a millisecond. */
static long steps = 1;

/* Work, not time: a part that is interrupted for long does as much of it as any other. */
__attribute__((noinline)) void spin(long ms)
{
    for (long n = ms * steps; n > 0; n--) {
        cpu_time();
        for (int i = 0; i < 2000; i++)
            sink += i;
    }
}

static void calibrate(void)
{
    for (int i = 0; i < 20; i++) {
        long begun = cpu_time();
        spin(1);
        long in_ms = 1000000 * steps / (cpu_time() - begun + 1);
        steps = in_ms > steps ? in_ms : steps;
    }
}

__attribute__((noinline)) void three_parts(void)
{
    spin(3);
    sink++;
}

__attribute__((noinline)) void one_part(void)
{
    spin(1);
    sink++;
}

__attribute__((noinline)) void sleeps_long(void)
{
    struct timespec t = {0, 30000000};
    call(SYS_nanosleep, (long)&t, 0, 0);
    sink++;
}

__attribute__((noinline)) void sleeps_short(void)
{
    struct timespec t = {0, 10000000};
    call(SYS_nanosleep, (long)&t, 0, 0);
    sink++;
}

__attribute__((noinline)) void waits(void)
{
    char c;
    call(SYS_read, ends[0], (long)&c, 1);
    sink++;
}

__attribute__((noinline)) void wakes(void)
{
    char c = 0;
    call(SYS_write, ends[1], (long)&c, 1);
    sink++;
}

static void *waker(void *unused)
{
    for (int i = 0; i < rounds; i++) {
        sleeps_short();
        wakes();
    }
    return unused;
}

int main(int argc, char **argv)
{
    rounds = argc > 2 ? atoi(argv[2]) : 1;
    if (!strcmp(argv[1], "forever"))
        for (;;)
            sleeps_short();
    if (!strcmp(argv[1], "wake")) {
        pthread_t t;
        if (pipe(ends) || pthread_create(&t, NULL, waker, NULL))
            return 1;
        for (int i = 0; i < rounds; i++)
            waits();
        pthread_join(t, NULL);
        return 0;
    }
    if (!strcmp(argv[1], "burn"))
        calibrate();
    for (int i = 0; i < rounds; i++) {
        if (!strcmp(argv[1], "burn")) {
            three_parts();
            one_part();
        } else {
            sleeps_long();
            sleeps_short();
        }
    }
    return 0;
}
