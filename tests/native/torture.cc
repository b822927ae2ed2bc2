// SPDX-License-Identifier: GPL-2.0-or-later
//
// Threads that allocate, change and free blocks of random sizes and hand them to each other, while others fork, load
// and unload libraries, throw exceptions through their frames, and take signals. Prints what is held at the end.
//
//     torture SEED ROUNDS SECONDS LIBRARY…
//
// A thread that makes no round for two minutes hangs: the program aborts and says which.

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <dlfcn.h>
#include <random>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

struct Held {
    void *p;
    size_t bytes;
};

// Every block that is held at the end is made here.
__attribute__((noinline)) static void *hold(void *p, size_t n)
{
    return realloc(p, n);
}

static constexpr int N_THREADS = 16, N_PLACES = 2000;
static std::atomic<Held *> places[N_PLACES];
static constexpr unsigned IS_DONE = ~0U;
static std::atomic<unsigned> n_rounds[N_THREADS];
static unsigned seed, rounds;
static time_t until;
static std::vector<const char *> libraries;

__attribute__((noinline)) static void deep(unsigned n, std::mt19937 &r)
{
    std::string text(r() % 300, 'x');
    if (n == 0)
        throw std::runtime_error(text);
    deep(n - 1, r);
}

static void fork_once(std::mt19937 &r)
{
    pid_t pid = fork();
    if (pid == 0) {
        for (int i = 0; i < 100; i++)
            free(malloc(r() % 1000));
        try {
            deep(r() % 20, r);
        } catch (std::exception const &) {
        }
        _exit(0);
    }
    int status;
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (pid < 0 || status) {
        fprintf(stderr, "fork: %d %x\n", (int)pid, status);
        abort();
    }
}

static void load_once(std::mt19937 &r)
{
    if (libraries.empty())
        return;
    void *library = dlopen(libraries[r() % libraries.size()], RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "dlopen: %s\n", dlerror());
        abort();
    }
    auto make = (void *(*)(int))dlsym(library, "plugin_hold");
    auto give = (void (*)(void *))dlsym(library, "plugin_free");
    auto raise = (void (*)(int))dlsym(library, "plugin_throw");
    give(make(r() % 1000));
    try {
        if (raise)
            raise(1);
    } catch (int) {
    }
    dlclose(library);
}

static void map_once(std::mt19937 &r)
{
    size_t bytes = (1 + r() % 50) * 4096;
    void *p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        abort();
    p = mremap(p, bytes, bytes + 4096, MREMAP_MAYMOVE);
    munmap(p, bytes + 4096);
}

static void work(unsigned number)
{
    std::mt19937 r(seed * 1000 + number);
    for (unsigned i = 0; i < rounds || time(nullptr) < until; i++) {
        n_rounds[number] = i + 1;
        unsigned what = r() % 1000;
        if (what < 2) {
            fork_once(r);
        } else if (what < 8) {
            load_once(r);
        } else if (what < 50) {
            try {
                deep(r() % 20, r);
            } catch (std::exception const &) {
            }
        } else if (what < 100) {
            map_once(r);
        } else {
            Held *mine = places[r() % N_PLACES].exchange(nullptr);
            size_t bytes = 1 + (r() % 50 ? r() % 2000 : r() % 300000);
            if (mine && r() % 3 == 0) {
                free(mine->p);
                delete mine;
                continue;
            }
            if (!mine)
                mine = new Held{nullptr, 0};
            mine->p = hold(mine->p, bytes);
            mine->bytes = bytes;
            Held *other = places[r() % N_PLACES].exchange(mine);
            if (other) {
                free(other->p);
                delete other;
            }
        }
    }
    n_rounds[number] = IS_DONE;
}

static std::atomic<bool> is_over;

static void watch()
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    unsigned seen[N_THREADS] = {};
    time_t since[N_THREADS] = {};
    while (!is_over) {
        usleep(50000);
        for (int i = 0; i < N_THREADS; i++) {
            unsigned now = n_rounds[i];
            if (now != seen[i] || !since[i])
                since[i] = time(nullptr);
            seen[i] = now;
            if (now != IS_DONE && time(nullptr) - since[i] > 120) {
                fprintf(stderr, "thread %d hangs after %u rounds\n", i, now);
                abort();
            }
        }
    }
}

static std::atomic<int> n_signals;

static void tick(int)
{
    int error = errno;
    n_signals++;
    munmap(mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096);
    close(dup(0));
    errno = error;
}

int main(int argc, char **argv)
{
    seed = atoi(argv[1]);
    rounds = atoi(argv[2]);
    until = time(nullptr) + atoi(argv[3]);
    libraries.assign(argv + 4, argv + argc);
    signal(SIGALRM, tick);
    itimerval every = {{0, 2000}, {0, 2000}};
    setitimer(ITIMER_REAL, &every, nullptr);
    std::thread watcher(watch);
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < N_THREADS; i++)
        threads.emplace_back(work, i);
    for (auto &t : threads)
        t.join();
    is_over = true;
    watcher.join();
    size_t bytes = 0, blocks = 0;
    for (auto &place : places)
        if (Held *held = place.load()) {
            bytes += held->bytes;
            blocks++;
        }
    printf("%zu %zu\n", bytes, blocks);
    return 0;
}
