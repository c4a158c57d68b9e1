/* Installs a plan of patches in itself and runs functions (the generated file that is linked with it): the smallest agent that keeps
 * the contract of patch::stub. Everything here is compiled without patches; functions of the other file are traced.
 *
 *   patched describe            tls offset, addresses of slow code
 *   patched plain               results of the functions
 *   patched run PLAN            results with patches, then what the records say
 *   patched step PLAN           a "signal" at each instruction of the stubs in turn
 *   patched alarm PLAN          signals by a timer
 *   patched fib PLAN|-          ns per call of fib
 *   patched floor               ns per pair of rdtsc
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include <x86intrin.h>
#include "layouts.h" /* of abi::stub, by the test */

extern void traced_all(void);      /* prints results */
extern long traced_small(long);    /* a few calls, no output */
extern long traced_fib(long);

struct timed { uint64_t slot, address, tsc; uint32_t function, written; };
struct thread { uint64_t top, top_slot, cur, end; uint32_t high, busy; uint64_t base; uint64_t rest[24]; };
__thread struct thread thread __attribute__((aligned(16), tls_model("local-exec")));

struct record { uint32_t time, word; };
#define RECORDS (1 << 21)
static struct record records[RECORDS];
static uint64_t wraps, chunk_records = RECORDS;
static volatile int in_slow;
static unsigned variant;
static const unsigned stride = 32;
static uint64_t area, area_len, stubs_len, lates;
static const struct layout *layout;
static char shadows[1 << 20] __attribute__((aligned(64)));
/* Settings, read before anything is patched: slow code may change no register that the traced file keeps across calls, and getenv does,
 * by the strlen that the C library chooses for the processor. */
static int no_chunk, no_shadow;

static int is_stub_return(uint64_t address) {
    return address - area < stubs_len && (address - area) % layout->size == layout->returns;
}

#define OF_ANOTHER 7

static uint64_t slot_of(uint64_t top) { return *(uint64_t *)(top - stride); }

/* Slow code. The program is compiled with -mgeneral-regs-only but for the traced file. */
static void first(void) {
    if (thread.base)
        return;
    thread.base = (uint64_t)shadows + 64;
    thread.top = thread.base;
    *(uint64_t *)(thread.base - stride) = INT64_MAX;
}

static void write_record(uint32_t time, uint32_t word) {
    if (thread.cur + 16 > thread.end) { /* no chunk, or full: the same one again, nothing is kept but counts */
        if (thread.cur)
            wraps++;
        thread.cur = (uint64_t)records, thread.end = (uint64_t)(records + chunk_records);
    }
    struct record *r = (struct record *)thread.cur;
    r->time = time, r->word = word;
    thread.cur += 8;
}

/* An entry whose record is lost has no time, and not that of a call that was there before. */
static void has_no_time(uint64_t slot) {
    struct timed *t = (struct timed *)(thread.top - stride);
    /* Behind the top is what has just been taken away, at an exit: below it may be the caller of a tail call. */
    if (variant != CALLERS || !thread.base || t->slot != slot || t[1].slot == slot)
        return;
    if (t->tsc == OF_ANOTHER)
        abort();
    t->tsc = OF_ANOTHER;
}

int chunk(uint64_t slot) {
    in_slow = 1;
    if (no_chunk)
        has_no_time(slot);
    if (!no_chunk)
        write_record(thread.high, 1);
    int none = !thread.cur;
    in_slow = 0;
    return none;
}

int high(uint64_t slot) {
    (void)slot;
    if (no_chunk)
        return 1;
    in_slow = 1;
    thread.high = __rdtsc() >> 32;
    write_record(thread.high, 1);
    in_slow = 0;
    return 0;
}

int enter(uint64_t slot, uint32_t function) {
    in_slow = 1;
    first();
    uint64_t address = *(uint64_t *)slot;
    while (slot_of(thread.top) < slot || (slot_of(thread.top) == slot && !is_stub_return(address)))
        thread.top -= stride;
    int full = no_shadow || thread.top + 2 * stride > (uint64_t)shadows + sizeof shadows;
    if (!full) {
        struct timed *t = (struct timed *)thread.top;
        t->tsc = __rdtsc(), t->function = function, t->written = variant != TIMED;
        *(uint64_t *)thread.top = slot;
        *(uint64_t *)(thread.top + 8) = address;
        thread.top += stride;
    }
    thread.top_slot = full ? 0 : slot_of(thread.top);
    in_slow = 0;
    return full;
}

int leave(uint64_t slot) {
    in_slow = 1;
    while (slot_of(thread.top) < slot)
        thread.top -= stride;
    if (slot_of(thread.top) != slot)
        abort();
    in_slow = 0;
    return 0;
}

int late(uint64_t slot) {
    in_slow = 1;
    struct timed *last = (struct timed *)(thread.top - 32);
    if (last->slot != slot)
        abort();
    lates++;
    for (struct timed *t = (struct timed *)thread.base; t <= last; t++)
        if (!t->written)
            t->written = 1, write_record(t->tsc, t->function << 1);
    write_record(__rdtsc(), last->function << 1 | 1);
    in_slow = 0;
    return 0;
}

#define SLOW(name, function)                                                                                                      \
    __asm__(".text\n" #name ": push %rbp\n mov %rsp, %rbp\n push %rdi\n push %rsi\n push %r8\n push %r9\n push %r10\n push %r11\n" \
            "lea 40(%rbp), %rdi\n mov %edx, %esi\n and $-16, %rsp\n call " #function "\n lea -48(%rbp), %rsp\n neg %eax\n"         \
            "pop %r11\n pop %r10\n pop %r9\n pop %r8\n pop %rsi\n pop %rdi\n pop %rbp\n ret\n");                                   \
    extern char name[]
SLOW(slow_chunk, chunk);
SLOW(slow_enter, enter);
SLOW(slow_exit, leave);
SLOW(slow_high, high);
SLOW(slow_late, late);

/* The plan (abi::plan). */
struct header { uint32_t magic, version, areas, patches, originals, reserved; uint64_t areas_at, patches_at, originals_at; };
struct area { uint64_t address, len, at, content, stubs; uint32_t variant, reserved; };
struct patch { uint64_t address; uint32_t area; uint8_t len, splits; uint16_t reserved; uint8_t old[16], new[16]; };

static void die(const char *why) {
    fprintf(stderr, "patched: %s\n", why);
    exit(2);
}

static void install(const char *path) {
    int fd = open(path, O_RDONLY);
    struct stat st;
    if (fd < 0 || fstat(fd, &st))
        die("no plan");
    char *plan = mmap(0, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    struct header *h = (struct header *)plan;
    struct area *a = (struct area *)(plan + h->areas_at);
    if (h->areas != 1)
        die("areas");
    void *at = mmap((void *)a->address, a->len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (at != (void *)a->address)
        die("area");
    memset(at, 0xcc, a->len);
    memcpy(at, plan + a->at, a->content);
    mprotect(at, a->len, PROT_READ | PROT_EXEC);
    area = a->address, area_len = a->len, stubs_len = a->stubs, variant = a->variant, layout = &layouts[variant];
    struct patch *p = (struct patch *)(plan + h->patches_at);
    for (uint32_t i = 0; i < h->patches; i++, p++) {
        if (memcmp((void *)p->address, p->old, p->len))
            die("other bytes");
        char *page = (char *)(p->address & ~4095);
        mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC);
        memcpy((void *)p->address, p->new, p->len);
        mprotect(page, 8192, PROT_READ | PROT_EXEC);
    }
}

/* What the records say: calls, the deepest one, and whether they nest. */
static uint64_t calls, open_calls, callers;
extern char __executable_start[], etext[];
static int is_code(uint64_t address) {
    return (address >= (uint64_t)__executable_start && address < (uint64_t)etext) || is_stub_return(address);
}

static int is_nested(int longjmps) {
    static uint32_t stack[1 << 16];
    uint64_t depth = 0, n = thread.cur ? (thread.cur - (uint64_t)records) / 8 : 0;
    calls = callers = 0;
    for (uint64_t i = 0; i < n; i++) {
        uint32_t word = records[i].word;
        if (word == 1)
            continue;
        if (word == CALLER) {
            /* Behind it are 14 bytes: a return address and its place; then comes the entry. */
            uint64_t address = *(uint64_t *)(records + i + 1), place = *(uint64_t *)(records + i + 2);
            if ((address & 0xffff) != 14 || !is_code(address >> 16) || labs((long)(place - (uint64_t)&word)) > 1 << 23)
                return printf("record %lu: called from %lx at %lx\n", i, address >> 16, place), 0;
            i += 2;
            if (i + 1 >= n || !records[i + 1].word || records[i + 1].word & 1)
                return printf("record %lu: no entry behind it\n", i), 0;
            callers++;
            continue;
        }
        if (word == 0)
            return printf("a gap at %lu\n", i), 0;
        if (!(word & 1)) {
            calls++;
            if (variant != ENTRY)
                stack[depth++ & 0xffff] = word >> 1;
            continue;
        }
        while (longjmps && depth && stack[depth - 1] != word >> 1)
            depth--;
        if (!depth || stack[--depth] != word >> 1)
            return printf("record %lu: exit of %u, not of the last call\n", i, word >> 1), 0;
    }
    open_calls = depth;
    if (variant == CALLERS && callers != calls)
        return printf("%lu calls, %lu callers\n", calls, callers), 0;
    return 1;
}

/* What the agent does for a signal that has interrupted a stub. */
static void settle(ucontext_t *context) {
    greg_t *pc = &context->uc_mcontext.gregs[REG_RIP];
    if ((uint64_t)*pc - area >= stubs_len)
        return;
    uint32_t offset = (*pc - area) % layout->size;
    uint64_t stub = *pc - offset;
    for (const struct again *a = layout->again; a->end; a++)
        if (offset >= a->start && offset < a->end) {
            *pc = stub + a->at;
            if (layout->commit[0].bytes > 8 && thread.cur && thread.cur + layout->commit[0].bytes <= thread.end)
                memset((char *)thread.cur + 8, 0, layout->commit[0].bytes - 8);
            if (thread.base)
                thread.top_slot = slot_of(thread.top);
        }
    for (const struct commit *c = layout->commit; c->next; c++)
        if (offset == c->at)
            thread.cur += c->bytes, *pc = stub + c->next;
}

/* Where the frame of a stub is. */
static void check_frame(ucontext_t *context) {
    uint64_t pc = context->uc_mcontext.gregs[REG_RIP], sp = context->uc_mcontext.gregs[REG_RSP];
    uint32_t offset = (pc - area) % layout->size;
    if (!memcmp((void *)pc, "\x48\x8d\xa4\x24", 4)) {
        /* lea rsp, [rsp+N] in front of the entry: the agent does it before anybody looks. */
        sp += *(int32_t *)(pc + 4);
        offset += 8;
    }
    const struct frame *f = layout->frames;
    while (f[1].from && f[1].from <= offset)
        f++;
    uint64_t cfa = sp + f->cfa, slot = cfa - 8, address = *(uint64_t *)slot;
    if (f->shadow) {
        uint64_t top = thread.top;
        while (slot_of(top) < slot)
            top -= stride;
        address = slot_of(top) == slot ? *(uint64_t *)(top - stride + 8) : 0;
    }
    if (cfa % 8 || !is_code(address)) {
        printf("offset %u: no frame: cfa %lx, return address %lx\n", offset, cfa, address);
        fflush(stdout);
        _exit(3);
    }
}

static long step_at, steps;
static void on_step(int sig, siginfo_t *info, void *context) {
    (void)sig, (void)info;
    ucontext_t *c = context;
    if ((uint64_t)c->uc_mcontext.gregs[REG_RIP] - area >= stubs_len)
        return;
    check_frame(c);
    if (steps++ != step_at)
        return;
    settle(c);
    /* Of what is begun anew, nothing is left that a record before it would be followed by. */
    for (struct record *r = (struct record *)thread.cur; r && r < (struct record *)thread.cur + 4; r++)
        if (r->word) {
            printf("step %ld: a word at %ld behind the records\n", step_at, (long)(r - (struct record *)thread.cur));
            fflush(stdout);
            _exit(3);
        }
    c->uc_mcontext.gregs[REG_EFL] &= ~0x100l; /* The rest is as in the first run. */
    if (traced_small(1) != traced_small(1))
        abort();
}

static void trap_flag(int on) {
    __asm__ volatile("lea -128(%%rsp), %%rsp\n pushfq\n andl $~0x100, (%%rsp)\n orl %0, (%%rsp)\n popfq\n lea 128(%%rsp), %%rsp"
                     : : "r"(on << 8) : "memory", "cc");
}

static void step_through(void) {
    struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGTRAP, &action, 0);
    long all = 0;
    /* Twice to see how many there are: the upper half of the counter may change in one of the runs, which takes some more. */
    for (step_at = -2; step_at < all; step_at++) {
        memset(&thread, 0, sizeof thread);
        memset(records, 0, 1 << 15);
        steps = 0;
        trap_flag(1);
        long result = traced_small(1);
        trap_flag(0);
        static long wanted;
        static uint64_t each, one;
        int nested = variant == TIMED && lates == 0 ? 1 : is_nested(0);
        uint64_t seen = calls;
        if (step_at < 0)
            wanted = result, each = seen, all = step_at == -1 && all < steps ? all : steps;
        if (step_at == 0)
            one = seen - each;
        if (!nested || open_calls || result != wanted || (step_at >= 0 && seen != each + one)) {
            printf("step %ld: result %ld for %ld, %lu calls for %lu, %lu open\n", step_at, result, wanted, seen, each + one, open_calls);
            fflush(stdout);
            _exit(3);
        }
        if (thread.base && thread.top != thread.base)
            die("the shadow stack is not empty");
    }
    printf("steps %ld\n", step_at);
}

static volatile long alarms, in_stubs;
static void on_alarm(int sig, siginfo_t *info, void *context) {
    (void)sig, (void)info;
    ucontext_t *c = context;
    alarms++;
    in_stubs += (uint64_t)c->uc_mcontext.gregs[REG_RIP] - area < stubs_len;
    settle(c);
    if (!in_slow)
        traced_small(2);
}

static void alarms_run(void) {
    struct sigaction action = {.sa_sigaction = on_alarm, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGALRM, &action, 0);
    struct itimerval often = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
    uint64_t ok = 1;
    for (int i = 0; i < 20; i++) {
        setitimer(ITIMER_REAL, &often, 0);
        long result = traced_fib(24);
        setitimer(ITIMER_REAL, &never, 0);
        if (result != 46368 || wraps)
            die("a wrong result");
        ok &= is_nested(0) && !open_calls;
        memset(records, 0, thread.cur - (uint64_t)records);
        thread.cur = (uint64_t)records;
    }
    printf("nested %lu\n", ok);
    fprintf(stderr, "%ld signals, %ld of them in stubs\n", alarms, in_stubs);
}

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    no_chunk = getenv("NO_CHUNK") != 0, no_shadow = getenv("NO_SHADOW") != 0;
    struct timed *end = (struct timed *)(shadows + sizeof shadows);
    for (struct timed *t = (struct timed *)(shadows + 64); no_chunk && t + 1 <= end; t++)
        t->tsc = OF_ANOTHER;
    setvbuf(stdout, 0, _IOFBF, 1 << 16);
    if (!strcmp(what, "describe")) {
        uint64_t fs;
        __asm__("mov %%fs:0, %0" : "=r"(fs));
        char *slow[] = {slow_chunk, slow_enter, slow_exit, slow_high, slow_late};
        printf("%ld", (long)((uint64_t)&thread - fs));
        for (int i = 0; i < 5; i++)
            printf(" %lu", (uint64_t)slow[i]);
        putchar('\n');
        return 0;
    }
    if (!strcmp(what, "floor")) {
        uint64_t begin = 0, times = 10000000;
        double from = seconds();
        for (uint64_t i = 0; i < times; i++)
            begin += __rdtsc(), begin ^= __rdtsc();
        printf("%.2f (%d)\n", (seconds() - from) / times, (int)begin & 1);
        return 0;
    }
    if (argc > 2 && strcmp(argv[2], "-"))
        install(argv[2]);
    if (!strcmp(what, "step")) {
        step_through();
    } else if (!strcmp(what, "alarm")) {
        alarms_run();
    } else if (!strcmp(what, "fib")) {
        double best = 1e18;
        chunk_records = 8192;
        for (int i = 0; i < 9; i++) {
            double begin = seconds();
            traced_fib(27);
            double took = seconds() - begin;
            best = took < best ? took : best;
        }
        printf("%.2f\n", best / 635621);
    } else {
        traced_all();
        fflush(stdout);
        int nested = is_nested(1);
        fprintf(stderr, "nested %d calls %lu open %lu wraps %lu lates %lu\n", nested, calls, open_calls, wraps, lates);
    }
    return 0;
}
