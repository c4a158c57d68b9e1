// Coroutines that are suspended inside of calls and continued by whatever thread comes next: by swapcontext(3), or by code that does no more
// than switch stacks. Threads end while coroutines owe returns of calls that they have made in them.
#include <pthread.h>
#include <sched.h>
#include <ucontext.h>

// How often a coroutine calls, of all depths in turn: there are 13.
#ifndef HANDS
#define HANDS 52
#endif
enum { FIBERS = 16, SMALL_STACK = 65536, LARGE_STACK = 400000, WORKERS = 4, TURNS = 37 };
struct fiber {
    ucontext_t context, *back;
    void *sp, *back_sp;
    int id, done;
    struct fiber *next;
};
static struct {
    pthread_mutex_t lock;
    struct fiber *first, **last;
    int unfinished, by_jump;
    void (*body)(struct fiber *);
} handed = {PTHREAD_MUTEX_INITIALIZER, NULL, NULL, 0, 0, NULL};

#ifdef __cplusplus
extern "C" {
#endif
// Registers that calls preserve go to the stack that is left, whose pointer goes to *from.
void switch_stacks(void **from, void *to);
void begin_fiber(void);
__asm__(".text\n"
        ".globl switch_stacks\n.type switch_stacks,@function\n"
        "switch_stacks:\n"
        "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
        "mov %rsp,(%rdi)\nmov %rsi,%rsp\n"
        "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n"
        ".size switch_stacks,.-switch_stacks\n"
        ".globl begin_fiber\n.type begin_fiber,@function\n"
        "begin_fiber:\n"
        "mov %rbx,%rdi\ncall run_fiber\nud2\n"
        ".size begin_fiber,.-begin_fiber\n");

ALONE void leave_fiber(struct fiber *f) {
    if (handed.by_jump) switch_stacks(&f->sp, f->back_sp);
    else swapcontext(&f->context, f->back);
    KEEP_CALL;
}
__attribute__((used)) void run_fiber(struct fiber *f) {
    handed.body(f);
    f->done = 1;
    for (;;) leave_fiber(f);
}
#ifdef __cplusplus
}
#endif

static void run_context(int low, int high) { run_fiber((struct fiber *)((unsigned long)(unsigned)low | (unsigned long)high << 32)); }

ALONE void enter_fiber(struct fiber *f) {
    ucontext_t here;
    f->back = &here;
    if (handed.by_jump) switch_stacks(&f->back_sp, f->sp);
    else swapcontext(&here, &f->context);
    KEEP_CALL;
}

static void give(struct fiber *f) {
    f->next = NULL;
    *handed.last = f;
    handed.last = &f->next;
}

// Continues fibers, a few times.
static void *work_on_fibers(void *turns) {
    for (long i = 0; i < (long)turns;) {
        pthread_mutex_lock(&handed.lock);
        struct fiber *f = handed.first;
        if (f && !(handed.first = f->next)) handed.last = &handed.first;
        int unfinished = handed.unfinished;
        pthread_mutex_unlock(&handed.lock);
        if (!unfinished) return NULL;
        if (!f) {
            sched_yield();
            continue;
        }
        enter_fiber(f);
        i++;
        pthread_mutex_lock(&handed.lock);
        if (f->done) handed.unfinished--;
        else give(f);
        pthread_mutex_unlock(&handed.lock);
    }
    return NULL;
}

static void hand_around(void (*body)(struct fiber *), int by_jump, int near_each_other) {
    static char near_stacks[FIBERS][SMALL_STACK] __attribute__((aligned(16)));
    static struct fiber fibers[FIBERS];
    void *far_stacks[FIBERS];
    handed.first = NULL;
    handed.last = &handed.first;
    handed.unfinished = FIBERS;
    handed.by_jump = by_jump;
    handed.body = body;
    for (int i = 0; i < FIBERS; i++) {
        struct fiber *f = &fibers[i];
        far_stacks[i] = near_each_other ? NULL : aligned_alloc(16, LARGE_STACK);
        char *stack = near_each_other ? near_stacks[i] : (char *)far_stacks[i];
        size_t size = near_each_other ? SMALL_STACK : LARGE_STACK;
        f->id = i;
        f->done = 0;
        if (by_jump) {
            // r15, r14, r13, r12, rbx, rbp, the address to return to, from which the stack is aligned.
            void **sp = (void **)(stack + size - 88);
            memset(sp, 0, 88);
            sp[4] = f;
            sp[6] = (void *)begin_fiber;
            f->sp = sp;
        } else {
            getcontext(&f->context);
            f->context.uc_stack.ss_sp = stack;
            f->context.uc_stack.ss_size = size;
            f->context.uc_link = NULL;
            makecontext(&f->context, (void (*)(void))run_context, 2, (int)(long)f, (int)((unsigned long)f >> 32));
        }
        give(f);
    }
    while (handed.unfinished) {
        pthread_t workers[WORKERS];
        for (int i = 0; i < WORKERS; i++) pthread_create(&workers[i], NULL, work_on_fibers, (void *)(long)(TURNS + i * 5));
        work_on_fibers((void *)5L);
        for (int i = 0; i < WORKERS; i++) pthread_join(workers[i], NULL);
    }
    for (int i = 0; i < FIBERS; i++) free(far_stacks[i]);
}
