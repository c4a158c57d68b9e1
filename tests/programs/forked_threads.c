// Children of fork whose threads call a function before the thread that goes on does.
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef ROUNDS
#define ROUNDS 50
#endif

__attribute__((noinline, noipa)) int work(int depth) {
    if (depth == 0) return sched_yield();
    return work(depth - 1) + 1;
}
static void *works(void *p) {
    long sum = 0;
    for (int i = 0; i < ROUNDS; i++) sum += work(100);
    return (void *)sum;
}
static int child(void) {
    pthread_t threads[3];
    long sum = 0;
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, works, NULL);
    usleep(2000);
    sum += (long)works(NULL);
    for (int i = 0; i < 3; i++) {
        void *result;
        pthread_join(threads[i], &result);
        sum += (long)result;
    }
    return sum == 4 * ROUNDS * 100;
}
int main(void) {
    int right = 0;
    for (int i = 0; i < 20; i++) {
        int status;
        // The thread has memory for its calls, and none is open.
        work(3);
        pid_t pid = fork();
        if (pid == 0) _exit(child() ? 0 : 1);
        waitpid(pid, &status, 0);
        right += status == 0;
    }
    printf("%d right\n", right);
    return 0;
}
