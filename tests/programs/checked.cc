// As checked.c, with names of C++. Argument: clean or thread.
#include <csignal>
#include <cstdio>
#include <cstring>
#include <thread>
#include <unistd.h>

#define KEEP __attribute__((noinline, noclone))

static volatile int state;
static volatile sig_atomic_t over;

namespace ui {
template <typename T> struct Window {
    KEEP void draw(T n) { state = state + n; }
    KEEP void paint(T n) { draw(n); state = state + 1; }
};
}

namespace {
KEEP void job(bool planted) {
    ui::Window<int> window;
    if (planted) window.paint(1);
    state = state + 1;
}
}

static void end(int) { over = 1; }

int main(int argc, char **argv) {
    bool planted = argc > 1 && !strcmp(argv[1], "thread");
    signal(SIGTERM, end);
    puts("begun");
    fflush(stdout);
    while (!over) {
        std::thread(job, planted).join();
        ui::Window<int> window;
        window.paint(1);
        usleep(2000);
    }
    return 0;
}
