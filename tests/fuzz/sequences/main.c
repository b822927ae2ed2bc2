/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A random sequence of calls that make, change and end memory, with threads, children, signals and exec between:
 *
 *   sequences STEPS SEED LOG [WHAT…]     WHAT: heap maps cuda threads fork signals exec (none: all)
 *
 * After each step a mark of the step's number and a snapshot, and a line in LOG.PID: the number, then of each kind its
 * bytes and blocks (-: not compared) by a book that knows nothing of the profiler: the program's own for the heap, the
 * kernel's for mappings, the simulation's for CUDA. What the steps have found (contents that survived, results of
 * calls) is printed as one number, by each process. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "jmassif.h"
#include "sequences.h"

enum { N_THREADS = N_WALKERS - 1 };

static struct walker self, others[N_THREADS];
static bool may_heap, may_maps, may_cuda, may_thread, may_fork, may_signal, may_exec;
static int depth; /* of children */
static char **arguments;
static unsigned long n_steps, number;
static int log_fd = -1;
const char *last_step = "start";

void found(struct walker *w, uint64_t what)
{
    w->result = (w->result ^ what) * 0x100000001b3u + 1;
}

static void seed(struct walker *w, uint64_t from)
{
    w->state = from * 0x9e3779b97f4a7c15u + 0x1234567;
}

static void begin(struct walker *w, uint64_t from, unsigned which)
{
    seed(w, from);
    w->which = which;
}

/* ---- the book ---- */

static void open_log(const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s.%d", name, (int)getpid());
    if (log_fd >= 0)
        close(log_fd);
    log_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    MUST(log_fd >= 0);
}

/* A child of fork has its parent's device memory in no book. */
static void tell(void)
{
    char text[1024], name[32];
    int64_t bytes = self.heap_bytes, blocks = self.heap_blocks;
    for (int i = 0; i < N_THREADS; i++) {
        bytes += others[i].heap_bytes;
        blocks += others[i].heap_blocks;
    }
    snprintf(name, sizeof name, "%lu", number);
    int n = snprintf(text, sizeof text, "%lu heap %lld %lld", number, (long long)bytes, (long long)blocks);
    if (may_maps)
        n += snprintf(text + n, sizeof text - (size_t)n, " anon %llu -", (unsigned long long)maps_resident());
    if (may_cuda && depth == 0)
        n += (int)cuda_tell(text + n, sizeof text - (size_t)n);
    n += snprintf(text + n, sizeof text - (size_t)n, " # %s\n", last_step);
    JMASSIF_MARK(name);
    JMASSIF_SNAPSHOT(); /* what is resident is looked at for this, not for marks */
    MUST(write(log_fd, text, (size_t)n) == n);
}

/* ---- threads ---- */

static void *walk_aside(void *argument)
{
    struct walker *w = argument;
    for (uint64_t n = chance(w, 60); n > 0; n--)
        heap_step(w);
    return NULL;
}

static void run_threads(struct walker *w)
{
    pthread_t threads[N_THREADS];
    int n = 1 + (int)chance(w, N_THREADS);
    pthread_attr_t small;
    MUST(pthread_attr_init(&small) == 0 && pthread_attr_setstacksize(&small, 256 << 10) == 0);
    for (int i = 0; i < n; i++)
        MUST(pthread_create(&threads[i], &small, walk_aside, &others[i]) == 0);
    for (uint64_t steps = chance(w, 40); steps > 0; steps--)
        heap_step(w);
    for (int i = 0; i < n; i++)
        MUST(pthread_join(threads[i], NULL) == 0);
    pthread_attr_destroy(&small);
}

/* ---- signals ---- */

static volatile sig_atomic_t n_signals;
static sigjmp_buf back;

/* At any moment: it may do what a handler may. */
static void on_timer(int signal)
{
    (void)signal;
    int kept = errno;
    n_signals++;
    void *at = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at != MAP_FAILED) {
        *(char *)at = 1;
        munmap(at, 8192);
    }
    errno = kept;
}

/* Raised between calls, so it may do anything, and may leave by a jump. */
static void on_raised(int signal)
{
    heap_step(&self);
    if (signal == SIGUSR2)
        siglongjmp(back, 1);
}

static void handle(int signal, void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    MUST(sigaction(signal, &action, NULL) == 0);
}

static void set_timer(long every)
{
    struct itimerval timer = {{0, every}, {0, every}};
    MUST(setitimer(ITIMER_REAL, &timer, NULL) == 0);
}

static NOINLINE void jump_out_of_a_handler(struct walker *w, int deep)
{
    if (deep > 0) {
        heap_step(w);
        jump_out_of_a_handler(w, deep - 1);
    }
    JMASSIF_REGION_BEGIN("left by a jump");
    raise(SIGUSR2);
    JMASSIF_REGION_END("left by a jump");
}

/* Valgrind does not extend the main stack for a handler that would rather have another one, while there is none. */
static void set_alternate_stack(void)
{
    static char alternate[64 << 10];
    stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
    MUST(sigaltstack(&stack, NULL) == 0);
}

static void run_signals(struct walker *w)
{
    switch (chance(w, 4)) {
    case 0:
        raise(SIGUSR1);
        break;
    case 1:
        if (sigsetjmp(back, 1) == 0)
            jump_out_of_a_handler(w, 1 + (int)chance(w, 8));
        break;
    case 2:
        set_alternate_stack();
        break;
    default:
        set_timer(chance(w, 2) ? 0 : (long)(200 + chance(w, 3000)));
    }
}

/* ---- children ---- */

static void walk(unsigned long end);

static _Noreturn void finish(void)
{
    char text[64];
    for (int i = 0; i < N_THREADS; i++)
        found(&self, others[i].result);
    int n = snprintf(text, sizeof text, "%lu %016llx\n", number, (unsigned long long)self.result);
    _exit(write(STDOUT_FILENO, text, (size_t)n) == n ? 7 : 1);
}

static void be_child(uint64_t from)
{
    depth++;
    set_timer(0);
    open_log(arguments[3]);
    maps_in_child();
    seed(&self, from);
    walk(number + 1 + chance(&self, 12));
    finish();
}

static _Noreturn void become_anew(unsigned long steps, uint64_t from)
{
    char told_steps[32], told_seed[32], *words[16] = {arguments[0], told_steps, told_seed, arguments[3]};
    snprintf(told_steps, sizeof told_steps, "%lu", steps);
    snprintf(told_seed, sizeof told_seed, "%llu", (unsigned long long)from);
    for (int i = 4; arguments[i] && i < 15; i++)
        words[i] = arguments[i];
    set_timer(0);
    execv(arguments[0], words);
    complain(__FILE__, __LINE__, "exec");
    _exit(3);
}

static void run_child(struct walker *w, bool with_threads)
{
    pthread_t thread;
    uint64_t from = chance(w, UINT32_MAX), kind = chance(w, may_exec ? 4 : 2);
    int status;
    if (with_threads)
        MUST(pthread_create(&thread, NULL, walk_aside, &others[0]) == 0);
    pid_t child = kind == 3 && !with_threads ? vfork() : fork();
    MUST(child >= 0);
    if (child == 0) {
        if (with_threads) { /* what the other thread was at, nobody knows */
            open_log(arguments[3]);
            _exit(7);
        }
        if (kind >= 2)
            become_anew(4, from);
        be_child(from);
    }
    if (with_threads)
        MUST(pthread_join(thread, NULL) == 0);
    pid_t ended;
    while ((ended = waitpid(child, &status, 0)) < 0 && errno == EINTR)
        ;
    MUST(ended == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

/* ---- the walk ---- */

static void step(struct walker *w)
{
    uint64_t what = chance(w, 64);
    if (what == 0 && may_fork && depth < 2) {
        last_step = "child";
        run_child(w, may_thread && chance(w, 3) == 0);
    } else if (what == 1 && may_thread) {
        last_step = "threads";
        run_threads(w);
    } else if (what < 5 && may_signal) {
        last_step = "signals";
        run_signals(w);
    } else if (what < 25 && may_maps) {
        maps_step(w);
    } else if (what < 45 && may_cuda && depth == 0) {
        last_step = "cuda";
        cuda_step(w);
    } else if (may_heap) {
        last_step = "heap";
        heap_step(w);
    }
}

static void walk(unsigned long end)
{
    tell();
    while (number < end) {
        number++;
        if (may_exec && depth == 0 && chance(&self, 500) == 0)
            become_anew(end - number, chance(&self, UINT32_MAX));
        step(&self);
        tell();
    }
}

static bool chosen(const char *what)
{
    bool any = arguments[4] == NULL;
    for (int i = 4; arguments[i]; i++)
        any = any || strcmp(arguments[i], what) == 0;
    return any;
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: sequences STEPS SEED LOG [WHAT…]\n");
        return 2;
    }
    arguments = argv;
    n_steps = strtoul(argv[1], NULL, 10);
    begin(&self, strtoull(argv[2], NULL, 10), 0);
    for (int i = 0; i < N_THREADS; i++)
        begin(&others[i], self.state + (uint64_t)i + 1, (unsigned)i + 1);
    may_heap = chosen("heap");
    may_maps = chosen("maps");
    may_cuda = chosen("cuda");
    may_thread = chosen("threads");
    may_fork = chosen("fork");
    may_signal = chosen("signals");
    may_exec = chosen("exec");
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    set_alternate_stack();
    handle(SIGALRM, on_timer, SA_RESTART | SA_ONSTACK);
    handle(SIGUSR1, on_raised, SA_ONSTACK);
    handle(SIGUSR2, on_raised, SA_NODEFER);
    open_log(argv[3]);
    walk(n_steps);
    finish();
}
