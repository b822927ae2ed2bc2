# SPDX-License-Identifier: GPL-2.0-or-later
"""The preloaded recorder in programs that do what is rare: they print the same and end the same as without it."""

import os
import random
import re
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

import pytest

from jmassif.model.run import Profile
from jmassif.reader.builder import load_file
from tests.harness import (
    ARCH,
    PYTHON,
    ROOT,
    Argument,
    Run,
    check_run,
    compile_c,
    native_library,
    recorder,
    run,
    user_function,
    written,
)

HEAD = """
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static void *volatile sink;
"""


class Recorded:
    def __init__(self, done: Run, alone: Run, directory: "tempfile.TemporaryDirectory[str]") -> None:
        self.done, self.alone, self._directory = done, alone, directory
        self.directory = Path(directory.name)

    def traces(self) -> List[Path]:
        return sorted(self.directory.glob("trace.*"), key=lambda path: path.stat().st_mtime)

    def profile(self) -> Profile:
        (trace,) = self.traces()
        return load_file(str(trace))


def same(
    program: Sequence[Argument],
    *options: str,
    env: Optional[Mapping[str, str]] = None,
    launcher: Sequence[Argument] = (),
    timeout: float = 60,
) -> Recorded:
    """Runs a program without and with the recorder, and compares what it prints and how it ends."""
    directory: "tempfile.TemporaryDirectory[str]" = tempfile.TemporaryDirectory(prefix="jmassif-test-")
    place = Path(directory.name)
    alone = run([*launcher, "env", *(f"{k}={v}" for k, v in (env or {}).items()), *program], cwd=place, timeout=timeout)
    command, environment = recorder(place / "trace.%p", ["-q", "--pages=no", *options], env=env, host="native")
    done = run([*launcher, *command, *program], env=environment, cwd=place, timeout=timeout)
    assert done == alone
    return Recorded(done, alone, directory)


def c(text: str, *flags: str, suffix: str = ".c") -> Path:
    return compile_c(HEAD + text, "-w", "-pthread", *flags, suffix=suffix)


def held(profile: Profile, program: Path, kind: str = "heap") -> Dict[str, Tuple[int, int]]:
    """By function of the program: the bytes and blocks of a kind at the end."""
    sums: Dict[str, Tuple[int, int]] = {}
    for account_id, (n_bytes, n_blocks) in profile.composition(len(profile.snapshots) - 1).items():
        account = profile.accounts[account_id]
        function = user_function(profile, account.node, program)
        if account.kind == kind and function:
            before = sums.get(function, (0, 0))
            sums[function] = (before[0] + n_bytes, before[1] + n_blocks)
    return sums


# ---- signals ---------------------------------------------------------------------------------

TIMER = """
static void every(int microseconds) {
    struct itimerval t = {{0, microseconds}, {0, microseconds}};
    setitimer(ITIMER_REAL, &t, 0);
}
static void *held_blocks[4000];
static volatile int n;
__attribute__((noinline)) static void *hold(int bytes) { return malloc(bytes); }
__attribute__((noinline)) static void *map(void) { return mmap(0, 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }
"""


def test_a_signal_handler_may_allocate_while_an_event_is_recorded() -> None:
    program = c(
        TIMER
        + """
static void tick(int s) { int e = errno; if (n < 3000) { free(held_blocks[n / 2]); held_blocks[n / 2] = 0; held_blocks[n] = hold(n + 1); n++; } errno = e; }
int main(void) {
    struct sigaction a = {.sa_handler = tick}, was;
    sigaction(SIGALRM, &a, 0);
    sigaction(SIGALRM, 0, &was);
    long bytes = 0, blocks = 0;
    every(100);
    while (n < 3000) munmap(map(), 4096);
    every(0);
    for (int i = 0; i < 3000; i++) if (held_blocks[i]) bytes += i + 1, blocks++;
    printf("%ld %ld %d %x\\n", bytes, blocks, was.sa_handler == tick, was.sa_flags & SA_SIGINFO);
}
""",
        "-O1",
    )
    ran = same([program])
    n_bytes, n_blocks, *_ = map(int, ran.done.stdout.split())
    assert held(ran.profile(), program)["hold"] == (n_bytes, n_blocks)


@pytest.mark.parametrize("stack", ["", "-DOTHER_STACK"])
@pytest.mark.parametrize("way", ["", "-DBY_SIGNAL", "-DRAW"])
def test_a_signal_handler_may_jump_away_while_an_event_is_recorded(way: str, stack: str) -> None:
    program = c(
        TIMER
        + """
static sigjmp_buf back;
static void tick(int s) { if (++n % 2) siglongjmp(back, 1); }
#if defined(RAW) && defined(__x86_64__)
void restorer(void);
__asm__("restorer: mov $15, %eax\\nsyscall\\n");
struct { void *handler; unsigned long flags; void *restorer; unsigned long mask; } raw = {tick, 0x04000000, restorer};
#endif
static void *other(void *x) { for (int i = 0; i < 1000; i++) free(malloc(i)); return 0; }
int main(void) {
    int flags = 0;
    pthread_t t;
#ifdef OTHER_STACK
    stack_t s = {malloc(65536), 0, 65536};
    sigaltstack(&s, 0);
    flags = SA_ONSTACK;
#endif
#ifdef BY_SIGNAL
    signal(SIGALRM, tick);
#elif defined(RAW) && defined(__x86_64__)
    raw.flags |= flags;
    syscall(SYS_rt_sigaction, SIGALRM, &raw, 0, 8);
#else
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = tick, .sa_flags = flags}, 0);
#endif
    every(150);
    if (sigsetjmp(back, 1) == 0 || n < 2000) while (n < 2000) munmap(map(), 4096);
    every(0);
    pthread_create(&t, 0, other, 0);
    pthread_join(t, 0);
    for (int i = 0; i < 100; i++) held_blocks[i] = hold(100);
    puts("done");
    return 3;
}
""",
        "-O1",
        *filter(None, [way, stack]),
    )
    if way == "-DRAW":  # a handler that no hook sees: nothing hangs
        done = record_one([program])
        assert (done.returncode, done.stdout) == (3, "done\n")
        assert done.stderr in ("", LEFT)
        return
    ran = same([program])
    assert held(ran.profile(), program)["hold"] == (10000, 100)


LEFT = "jmassif: a thread has left the recorder by a jump or by its end: the recording ends here\n"


@pytest.mark.skipif(ARCH != "amd64", reason="steps by the trap flag of x86-64")
def test_a_handler_that_no_hook_sees_may_jump_away_at_any_instruction() -> None:
    """Each child jumps out of sigaction at one instruction further on, and hangs if the lock is left to nobody."""
    program = c(
        """
static sigjmp_buf back;
static volatile int n, at;
static int *is_over;
static void step(int s) { if (++n == at) siglongjmp(back, 1); }
void restorer(void);
__asm__("restorer: mov $15, %eax\\nsyscall\\n");
struct { void *handler; unsigned long flags; void *restorer; unsigned long mask; } raw = {step, 0x04000000, restorer};
static void *other(void *x) { for (int i = 0; i < 10; i++) free(malloc(i)); return 0; }
__attribute__((noinline)) static void trap(int on) {
    if (on) __asm__ volatile("pushfq\\norq $0x100, (%%rsp)\\npopfq" ::: "memory", "cc");
    else __asm__ volatile("pushfq\\nandq $~0x100, (%%rsp)\\npopfq" ::: "memory", "cc");
}
__attribute__((noinline)) static void record(int is_watched) {
    struct sigaction a = {.sa_handler = SIG_DFL};
    trap(is_watched);
    sigaction(SIGURG, &a, 0);
    trap(0);
}
static int child(void) {
    pthread_t t;
    syscall(SYS_rt_sigaction, SIGTRAP, &raw, 0, 8);
    if (sigsetjmp(back, 1) == 0) for (int i = 0; i < 4; i++) record(i == 3);
    pthread_create(&t, 0, other, 0);
    pthread_join(t, 0);
    other(0);
    *is_over = n < at;
    return 0;
}
int main(void) {
    is_over = mmap(0, 4096, 3, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (at = 1; !*is_over; at++) {
        int status, pid = fork();
        if (pid == 0) _exit(child());
        for (int i = 0; waitpid(pid, &status, WNOHANG) == 0; i++) usleep(200), i == 50000 && kill(pid, SIGKILL);
        if (status) printf("instruction %d: status %x\\n", at, status), *is_over = 1;
    }
    printf("%d\\n", at > 100);
    return 3;
}
""",
        "-O1",
    )
    done = record_one([program], "--trace-children=yes")
    assert (done.returncode, done.stdout, set(done.stderr.splitlines())) == (3, "1\n", {LEFT.strip()})


def record_one(program: Sequence[Argument], *options: str, timeout: float = 60) -> Run:
    with tempfile.TemporaryDirectory(prefix="jmassif-test-") as directory:
        command, environment = recorder(f"{directory}/trace.%p", ["-q", *options], host="native")
        return run([*command, *program], env=environment, cwd=Path(directory), timeout=timeout)


# ---- system calls that others make --------------------------------------------------------------

OVERWRITES = """
static void *volatile kept[100];
static int calls;
static void *their_mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset) {
    calls++;
    return (void *)syscall(SYS_mmap, at, n, protection, flags, fd, offset);
}
static int their_munmap(void *at, size_t n) { calls++; return syscall(SYS_munmap, at, n); }
static void overwrite(const char *name, void *with) {
    void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
    unsigned char *code = dlsym(libc, name), jump[] = {0x49, 0xbb, 0, 0, 0, 0, 0, 0, 0, 0, 0x41, 0xff, 0xe3};
    memcpy(jump + 2, &with, 8);
    mprotect((void *)((long)code & -4096), 8192, 7);
    memcpy(code, jump, sizeof jump);
}
__attribute__((noinline)) static void *hold(size_t n) { return memset(malloc(n), 1, n); }
__attribute__((noinline)) static void *map(size_t n) { return memset(mmap(0, n, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 1, n); }
int main(void) {
    if (getenv("OVERWRITE")) overwrite("mmap", their_mmap), overwrite("munmap", their_munmap);
    for (int i = 0; i < 10; i++) kept[i] = hold(3000000);
    for (int i = 0; i < 10; i++) kept[10 + i] = map(1000000 + 4096 * i);
    for (int i = 0; i < 5; i++) free(kept[i]), munmap(kept[10 + i], 1000000 + 4096 * i);
    for (int i = 0; i < 5; i++) kept[i] = 0;
    printf("%d\\n", calls > 29);
    fflush(stdout);
    _exit(0);
}
"""


@pytest.mark.skipif(ARCH != "amd64", reason="writes instructions of x86-64")
@pytest.mark.parametrize("way", ["", "1"])
def test_mappings_are_counted_once_if_another_library_overwrites_mmap(way: str) -> None:
    program = c(OVERWRITES, "-O1")
    env = {"OVERWRITE": way} if way else {}
    ran = same([program], "--pages=yes", env=env)
    profile = ran.profile()
    assert ran.done.stdout == f"{1 if way else 0}\n"
    assert held(profile, program)["hold"] == (5 * 3_000_000, 5)
    assert held(profile, program, "anon") == {"map": (sum((245 + i) * 4096 for i in range(5, 10)), 5)}


def test_what_a_program_has_mapped_stays_its_own_where_a_library_is_loaded_below_it() -> None:
    """The kernel merges it with the library's zero-initialised data, which no hook sees."""
    library = c(
        "static char zero[1800 << 10]; char *end(void) { return (char *)(((long)zero + sizeof zero + 4095) & -4096); }",
        "-shared",
        "-fpic",
    )
    program = c(
        """
#define ANON(n) mmap(0, n, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
__attribute__((noinline)) static char *map(size_t n) { return ANON(n); }
__attribute__((noinline)) static char *fill(size_t n) { return ANON(n); }
int main(int argc, char **argv) {
    for (int i = 0; i < 100; i++) {
        char *mapped = map(2000 << 10), *kept = mapped + (1920 << 10);
        munmap(mapped, 1920 << 10);
        void *library = dlopen(argv[1], RTLD_NOW);
        if (kept == ((char *(*)(void))dlsym(library, "end"))()) {
            memset(kept, 1, 80 << 10);
            puts("1");
            fflush(stdout);
            _exit(0);
        }
        dlclose(library); // it went into a gap further up, which the recorder had left
        munmap(kept, 80 << 10);
        fill(1700 << 10);
    }
}
""",
        "-ldl",
    )
    ran = same([program, library], "--pages=yes")
    assert ran.done.stdout == "1\n"
    assert held(ran.profile(), program, "anon")["map"] == (80 << 10, 1)


def test_a_locale_is_not_of_the_function_that_runs_when_its_mapping_is_seen() -> None:
    """The C library maps it by a call of its own, which no hook sees."""
    program = c(
        """
#include <locale.h>
__attribute__((noinline)) static void *later(int n) { return malloc(n); }
int main(void) {
    if (!setlocale(LC_ALL, "C.UTF-8")) return 1;
    for (int i = 0; i < 300; i++) sink = later(10), usleep(1000);
    _exit(0);
}
"""
    )
    profile = same([program], "--pages=yes").profile()
    assert "later" not in held(profile, program, "file")
    innermost = [
        next(profile.stack(profile.accounts[i].node), 0) for i in profile.composition(len(profile.snapshots) - 1)
    ]
    assert "LC_CTYPE" in [os.path.basename(profile.frame(i).object) for i in innermost if i]


# ---- descriptors -----------------------------------------------------------------------------

CLOSERS = {
    "close each": "for (int fd = 3; fd < 2000; fd++) close(fd);",
    "closefrom": "closefrom(3);",
    "close_range": 'printf("%d\\n", close_range(3, ~0U, 0));',
    "close_range by a system call": "syscall(SYS_close_range, 3, ~0U, 0);",
    "dup2 over all": "for (int fd = 3; fd < 1100; fd++) dup2(1, fd);",
}


@pytest.mark.parametrize("way", CLOSERS)
def test_a_program_may_close_all_descriptors_and_use_them_for_its_own_files(way: str) -> None:
    program = c(
        """
__attribute__((noinline)) static void *hold(int n) { return malloc(n); }
int main(void) {
    setvbuf(stdout, 0, _IONBF, 0);
    for (int i = 0; i < 100; i++) sink = hold(10);
    """
        + CLOSERS[way]
        + """
    for (int i = 0; i < 1050; i++) { char name[20]; sprintf(name, "f%d", i); open(name, O_RDWR | O_CREAT, 0600); }
    usleep(700000);
    for (int i = 0; i < 100000; i++) free(hold(100 + i % 1000));
    for (int i = 0; i < 100; i++) sink = hold(10);
    long bytes = 0;
    for (int i = 0; i < 1050; i++) { char name[20]; sprintf(name, "f%d", i); int fd = open(name, O_RDONLY); bytes += lseek(fd, 0, SEEK_END); close(fd); }
    printf("%ld bytes in my files\\n", bytes);
}
""",
        "-O1",
    )
    ran = same([program]) if way != "dup2 over all" else None
    if ran:
        assert held(ran.profile(), program)["hold"] == (2000, 200)
    else:
        done = record_one([program])
        assert done.returncode == 0 and done.stderr == ""


def test_messages_do_not_go_into_a_file_that_the_program_has_put_at_standard_error() -> None:
    program = c(
        'int main(void) { close(2); open("mine", O_RDWR | O_CREAT, 0600); usleep(1000); free(malloc(1)); return 0; }'
    )
    with tempfile.TemporaryDirectory(prefix="jmassif-test-") as directory:
        command, environment = recorder(f"{directory}/trace.%p", host="native")
        assert run([*command, program], env=environment, cwd=Path(directory)).returncode == 0
        assert (Path(directory) / "mine").read_bytes() == b""


def test_a_full_disk_ends_the_recording_and_not_the_program(tmp_path: Path) -> None:
    program = c(
        'int main(void) { for (int i = 0; i < 300000; i++) sink = malloc(i % 5000 + 1); puts("done"); return 4; }'
    )
    command, environment = recorder("/dev/full", ["-q", "--large=0"], host="native")
    done = run([*command, program], env=environment, cwd=tmp_path)
    assert done.returncode == 2 or (done.returncode, done.stdout) == (4, "done\n")
    limited = run(["sh", "-c", 'ulimit -f 40; exec "$@"', "sh", *record_command(tmp_path), program], cwd=tmp_path)
    assert (limited.returncode, limited.stdout) == (4, "done\n")
    assert "file size limit; the program goes on" in limited.stderr


def record_command(directory: Path, *options: str) -> List[Argument]:
    command, environment = recorder(directory / "trace.%p", ["-q", *options], host="native")
    assert not environment
    return command


# ---- processes -------------------------------------------------------------------------------


def test_children_of_every_kind_change_nothing() -> None:
    program = c(
        """
static char stack[65536] __attribute__((aligned(64)));
static int quiet(void *x) { return *(int *)x; }
__attribute__((noinline)) static void *hold(int n) { return malloc(n); }
static void tell(const char *what, int status) { printf("%s %x\\n", what, status); fflush(stdout); }
int main(int argc, char **argv) {
    int status;
    pid_t pid;
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    char *const echo[] = {"sh", "-c", "exit 7", 0};
    for (int i = 0; i < 30; i++) {
        sink = hold(100);
        if (!(pid = fork())) { for (int k = 0; k < 1000; k++) sink = hold(77); _exit(i); }
        waitpid(pid, &status, 0); tell("fork", status);
        if (!(pid = fork())) { sink = hold(7); exit(i); }
        waitpid(pid, &status, 0); tell("fork, exit", status);
        if (!(pid = fork())) { sink = hold(7); abort(); }
        waitpid(pid, &status, 0); tell("fork, abort", status & 0x7f);
        if (!(pid = vfork())) _exit(i);
        waitpid(pid, &status, 0); tell("vfork", status);
        if (!(pid = vfork())) { close(55); dup2(1, 9); execv("/bin/sh", echo); _exit(1); }
        waitpid(pid, &status, 0); tell("vfork, exec", status);
        if (!(pid = vfork())) { execv("/absent", echo); _exit(9); }
        waitpid(pid, &status, 0); tell("vfork, no exec", status);
        tell("spawn", posix_spawn(&pid, "/bin/sh", 0, 0, echo, environ));
        waitpid(pid, &status, 0); tell("spawn", status);
        tell("spawnp", posix_spawnp(&pid, "absent", 0, 0, echo, environ));
        pid = clone(quiet, stack + sizeof stack, CLONE_VM | SIGCHLD, &i);
        waitpid(pid, &status, 0); tell("clone with memory", status);
        pid = clone(quiet, stack + sizeof stack, CLONE_VM | CLONE_VFORK | CLONE_FILES | SIGCHLD, &i);
        waitpid(pid, &status, 0); tell("clone with files", status);
        if (!(pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0))) { for (int k = 0; k < 3000; k++) sink = hold(k); _exit(i); }
        waitpid(pid, &status, 0); tell("raw clone", status);
        if (!(pid = _Fork())) { for (int k = 0; k < 3000; k++) sink = hold(k); _exit(i); }
        waitpid(pid, &status, 0); tell("_Fork", status);
        tell("system", system("exit 3"));
        FILE *p = popen("echo $LD_PRELOAD.$JMASSIF_NATIVE", "r");
        char line[100] = "";
        fgets(line, 100, p);
        tell(line, pclose(p));
        tell("no more", wait(0));
    }
}
""",
        "-O1",
    )
    ran = same([program])
    at_end = [held(load_file(str(path)), program).get("hold", (0, 0)) for path in ran.traces()]
    assert at_end.count((3000, 30)) == 1
    assert len(at_end) > 60  # children by fork
    assert max(at_end) < (100000, 1100)  # none by a clone has written into its parent's trace


def test_options_that_are_not_each_in_a_line_are_pointed_out(tmp_path: Path) -> None:
    options = f"--jmassif-out-file={tmp_path}/trace --pages=no"
    done = run([PYTHON, "-c", "print(1)"], env={"LD_PRELOAD": str(native_library()), "JMASSIF_NATIVE": options})
    assert (done.returncode, done.stdout) == (0, "1\n")
    first, _ = done.stderr.splitlines()
    assert first == f"jmassif: JMASSIF_NATIVE has one option per line, so this is one: {options}"


def test_signals_that_nobody_handles_look_so_and_end_the_program_by_their_number() -> None:
    """The C library's own abort, a fault and a signal from outside, in a program that has asked for all it may see of them."""
    program = c(
        """
#include <assert.h>
static int n_handled;
static void count(int number) { n_handled++; }
__attribute__((noinline)) static void *hold(int n) { return malloc(n); }
static void tell(int number) {
    struct sigaction a;
    sigaction(number, NULL, &a); // the flag that is left out is the C library's own, SA_RESTORER
    printf("%d: %d %x %d\\n", number, a.sa_handler == SIG_DFL, a.sa_flags & ~0x04000000, sigismember(&a.sa_mask, SIGHUP));
}
int main(int argc, char **argv) {
    int status;
    for (int i = 1; i < 32; i++)
        if (i != SIGPIPE && i != SIGXFSZ) tell(i); // Python's children ignore them
    printf("%d", signal(SIGTERM, count) == SIG_DFL);
    printf(" %d", signal(SIGTERM, SIG_DFL) == count);
    printf(" %d\\n", signal(SIGTERM, SIG_DFL) == SIG_DFL);
    tell(SIGTERM);
    signal(SIGUSR1, count);
    if (!vfork()) { signal(SIGUSR1, SIG_DFL); _exit(0); }
    wait(&status);
    raise(SIGUSR1);
    printf("%d %x\\n", n_handled, status);
    fflush(stdout);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    sink = hold(1000);
    close(2);
    switch (argv[1][0]) {
    case 'a': assert(argc == 0);
    case 's': *(volatile int *)8 = 1;
    case 't': if (!fork()) { kill(getppid(), SIGTERM); _exit(0); } for (;;) pause();
    case 'k': kill(getpid(), SIGUSR2); for (;;) pause();
    }
}
""",
    )
    for way, number in ("a", signal.SIGABRT), ("s", signal.SIGSEGV), ("t", signal.SIGTERM), ("k", signal.SIGUSR2):
        ran = same([program, way])
        assert ran.done.returncode == -number
        profiles = [load_file(str(trace)) for trace in ran.traces()]
        ends = [(p.end.code, held(p, program)["hold"]) for p in profiles if p.end and p.end.reason == "signal"]
        assert ends == [(number, (1000, 1))], way


def test_a_program_sees_no_child_of_the_recorder() -> None:
    program = c(
        """
int main(void) {
    int status, n = 0;
    usleep(300000);
    for (int i = 0; i < 3; i++) { if (!fork()) _exit(i); }
    while (wait(&status) > 0) n++;
    printf("%d %d\\n", n, errno == ECHILD);
    siginfo_t s = {0};
    printf("%d\\n", waitid(P_ALL, 0, &s, WEXITED | WNOHANG));
    signal(SIGCHLD, SIG_IGN);
    printf("%d\\n", waitpid(-1, &status, WNOHANG));
}
"""
    )
    same([program])


def test_a_program_that_executes_itself_again_and_again_has_no_dead_children() -> None:
    program = c(
        """
int main(int argc, char **argv) {
    int n = atoi(argv[1]);
    free(malloc(100));
    usleep(10000);
    if (n) { char next[10]; sprintf(next, "%d", n - 1); execl(argv[0], argv[0], next, NULL); }
    usleep(300000);
    char path[100], line[4096] = "";
    sprintf(path, "/proc/self/task/%d/children", getpid());
    FILE *f = fopen(path, "r");
    int children = 0;
    if (f && fgets(line, sizeof line, f)) for (char *c = line; *c; c++) children += *c == ' ';
    printf("%s\\n", children > 1 ? line : "none or one");
}
"""
    )
    same([program, "30"])
    same([program, "30"], "--trace-children=yes")


def test_a_daemon_is_recorded_to_its_end() -> None:
    program = c(
        """
__attribute__((noinline)) static void *hold(int n) { return malloc(n); }
int main(void) {
    int end[2];
    pipe(end);
    if (fork()) { char b; close(end[1]); read(end[0], &b, 1); return 5; }
    setsid();
    if (fork()) _exit(0);
    daemon(0, 0);
    unsetenv("LD_PRELOAD");
    for (int i = 0; i < 50; i++) sink = hold(40);
    exit(0);
}
"""
    )
    ran = same([program])
    assert (2000, 50) in [held(load_file(str(path)), program).get("hold") for path in ran.traces()]


def test_rights_directory_and_root_may_be_given_up() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give up rights")
    program = c(
        """
__attribute__((noinline)) static void *hold(int n) { return malloc(n); }
int main(void) {
    for (int i = 0; i < 50; i++) sink = hold(40);
    mkdir("jail", 0755);
    if (chroot("jail") || chdir("/") || setgid(65534) || setuid(65534)) return 1;
    usleep(700000);
    for (int i = 0; i < 50; i++) sink = hold(40);
    free(malloc(100000));
    puts("done");
    return 6;
}
"""
    )
    ran = same([program])
    assert held(ran.profile(), program)["hold"] == (4000, 100)


LIMITS = {
    "address space": "setrlimit(RLIMIT_AS, &(struct rlimit){1 << 30, 1 << 30});",
    "descriptors": "setrlimit(RLIMIT_NOFILE, &(struct rlimit){8, 8});",
    "stack": "setrlimit(RLIMIT_STACK, &(struct rlimit){65536, 65536});",
    "file size": "signal(SIGXFSZ, SIG_IGN); setrlimit(RLIMIT_FSIZE, &(struct rlimit){0, 0});",
    "processes": "setrlimit(RLIMIT_NPROC, &(struct rlimit){1, 1});",
    "processor": "setrlimit(RLIMIT_CPU, &(struct rlimit){30, 30});",
}


@pytest.mark.parametrize("limit", LIMITS)
def test_limits_are_borne(limit: str) -> None:
    program = c(
        """
static void *work(void *x) { for (int i = 0; i < 3000; i++) sink = malloc(i); return 0; }
int main(int argc, char **argv) {
    if (argc == 1) {
        """
        + LIMITS[limit]
        + """
        if (!getenv("DEEPER")) { work(0); puts("done"); return 3; }
    }
    pthread_t t;
    work(0);
    if (pthread_create(&t, 0, work, 0) == 0) pthread_join(t, 0);
    printf("%d\\n", open("/dev/null", O_RDONLY) > 0);
    puts("done");
    return 3;
}
"""
    )
    if limit == "file size":
        done = record_one([program])
        assert (done.returncode, done.stdout) == (3, "done\n")
        return
    same([program])
    if limit in ("stack", "descriptors", "address space"):  # from the start
        words = {"stack": "-s 128", "descriptors": "-n 12", "address space": "-v 400000"}[limit]
        same([program, "x"], launcher=["sh", "-c", f'ulimit {words}; exec "$@"', "sh"])


# ---- threads ---------------------------------------------------------------------------------


def test_a_thousand_threads_with_the_smallest_stacks() -> None:
    program = c(
        """
__attribute__((noinline)) static void *hold(int n) { return malloc(n); }
static pthread_barrier_t all;
static void *work(void *x) {
    for (int i = 0; i < 50; i++) free(hold(i + 1));
    sink = hold(10);
    pthread_barrier_wait(&all);
    return hold(20);
}
int main(void) {
    enum { N = 1000 };
    static pthread_t t[N];
    void *p;
    pthread_attr_t a;
    pthread_attr_init(&a);
    printf("%d\\n", pthread_attr_setstacksize(&a, 16384));
    pthread_barrier_init(&all, 0, N);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < N; i++) { int e = pthread_create(&t[i], &a, work, 0); if (e) { printf("%d\\n", e); return 1; } }
        for (int i = 0; i < N; i++) { pthread_join(t[i], &p); free(p); }
    }
    puts("done");
}
""",
        "-O1",
    )
    ran = same([program])
    assert held(ran.profile(), program)["hold"] == (20000, 2000)


def test_threads_may_free_while_they_end_and_be_cancelled_anywhere() -> None:
    program = c(
        """
__attribute__((noinline)) static void *hold(int n) { return malloc(n); }
static pthread_key_t keys[20];
static void ends(void *p) { free(p); static int n; if (__atomic_add_fetch(&n, 1, __ATOMIC_RELAXED) % 3 == 0) pthread_setspecific(keys[n % 20], hold(5)); }
static void *keeps(void *x) { for (int i = 0; i < 20; i++) pthread_setspecific(keys[i], hold(30)); return 0; }
static void *at_once(void *x) { pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, 0); for (;;) ; }
static void *in_calls(void *x) { for (;;) { int fd = open("/dev/null", O_RDONLY); char b; read(fd, &b, 1); close(fd); void *p = hold(1); free(p); pthread_testcancel(); } }
static void *quits(void *x) { free(hold(3)); pthread_exit(0); }
int main(void) {
    pthread_t t;
    for (int i = 0; i < 20; i++) pthread_key_create(&keys[i], ends);
    for (int i = 0; i < 300; i++) {
        void *(*f)(void *) = i % 4 == 0 ? keeps : i % 4 == 1 ? at_once : i % 4 == 2 ? in_calls : quits;
        pthread_create(&t, 0, f, 0);
        if (i % 8 > 3) usleep(300);
        if (f == at_once || f == in_calls) pthread_cancel(t);
        if (i % 16 > 7 && f != in_calls) pthread_detach(t); else pthread_join(t, 0);
    }
    usleep(100000);
    puts("done");
    return 2;
}
""",
        "-O1",
    )
    same([program])


def test_the_main_thread_may_end_before_the_others() -> None:
    program = c(
        """
__attribute__((noinline)) static void *hold(int n) { return malloc(n); }
static void *work(void *x) { usleep(800000); for (int i = 0; i < 100; i++) sink = hold(50); puts("after main"); fflush(stdout); return 0; }
int main(void) { pthread_t t; pthread_create(&t, 0, work, 0); pthread_exit(0); }
"""
    )
    ran = same([program])
    assert held(ran.profile(), program)["hold"] == (5000, 100)


def test_handlers_of_fork_may_allocate_while_other_threads_do() -> None:
    program = c(
        """
__attribute__((noinline)) static void *hold(int n) { return malloc(n); }
static void hook(void) { free(hold(100)); }
static volatile int over;
static void *work(void *x) { while (!over) { free(hold(50)); close(open("/dev/null", 0)); } return 0; }
__attribute__((constructor(101))) static void early(void) { pthread_atfork(hook, hook, hook); }
int main(void) {
    pthread_t t[4];
    int status, sum = 0;
    pthread_atfork(hook, hook, hook);
    for (int i = 0; i < 4; i++) pthread_create(&t[i], 0, work, 0);
    for (int i = 0; i < 100; i++) {
        pid_t pid = fork();
        if (!pid) { for (int k = 0; k < 50; k++) free(hold(k)); if (i % 2) exit(1); _exit(1); }
        waitpid(pid, &status, 0);
        sum += status == 0x100;
    }
    over = 1;
    for (int i = 0; i < 4; i++) pthread_join(t[i], 0);
    printf("%d\\n", sum);
}
""",
        "-O1",
    )
    same([program])


# ---- libraries -------------------------------------------------------------------------------


def test_several_threads_may_fork_while_a_lock_of_the_c_library_is_held() -> None:
    # fflush(NULL) holds the list of streams, which a fork needs, until somebody reads from the pipe.
    program = c(
        """
static volatile int is_over;
static int end[2];
__attribute__((noinline)) static void *hold(int n) { return malloc(n); }
static void *flush(void *x) { fflush(NULL); return x; }
static void *storm(void *x) { while (!is_over) free(realloc(malloc(100), 2000)); return x; }
static void wait_a_while(void) { usleep(200000); } // several threads are between handlers at once
static void *forks(void *x) {
    int status, pid = fork();
    if (!pid) { free(hold(100)); _exit(3); }
    waitpid(pid, &status, 0);
    return (void *)(long)WEXITSTATUS(status);
}
int main(void) {
    pthread_t flusher, storms[3], forking[3];
    static char full[1 << 16];
    long sum = 0;
    void *ended;
    pipe(end);
    FILE *out = fdopen(end[1], "w");
    while (fcntl(end[1], F_SETFL, O_NONBLOCK), write(end[1], full, sizeof full) > 0);
    fcntl(end[1], F_SETFL, 0);
    fputs("text", out);
    pthread_create(&flusher, 0, flush, 0);
    usleep(100000);
    pthread_atfork(wait_a_while, 0, 0);
    for (int i = 0; i < 3; i++) pthread_create(&forking[i], 0, forks, 0);
    for (int i = 0; i < 3; i++) pthread_create(&storms[i], 0, storm, 0);
    sleep(1);
    for (int i = 0; i < 100; i++) sink = hold(10);
    read(end[0], full, sizeof full);
    for (int i = 0; i < 3; i++) { pthread_join(forking[i], &ended); sum += (long)ended; }
    usleep(300000);
    is_over = 1;
    for (int i = 0; i < 3; i++) pthread_join(storms[i], 0);
    pthread_join(flusher, 0);
    for (int i = 0; i < 100; i++) sink = hold(10);
    printf("%ld\\n", sum);
}
""",
        "-O1",
    )
    with tempfile.TemporaryDirectory(prefix="jmassif-test-") as directory:
        command, environment = recorder(f"{directory}/trace.%p", ["-q", "--pages=no"], host="native")
        done = run([*command, program], env=environment, timeout=60)
        assert (done.returncode, done.stdout) == (0, "9\n"), done.stderr
        assert done.stderr.count("threads went on during the fork") == len(done.stderr.splitlines())
        # A child that kept the lock has a trace of its own.
        sums = [held(load_file(str(trace)), program).get("hold") for trace in Path(directory).glob("trace.*")]
        assert (2000, 200) in sums


PLUGIN = """
#include <stdlib.h>
#include <string.h>
static __thread char local[LOCAL];
__attribute__((noinline)) void *plugin_hold(int n) { local[n % LOCAL]++; return malloc(n); }
void plugin_free(void *p) { free(p); }
char *plugin_copy(const char *s) { return strdup(s); }
"""

PLUGIN_THAT_THROWS = """
#include <stdlib.h>
extern "C" {
__attribute__((noinline)) void *plugin_hold(int n) { return malloc(n); }
void plugin_free(void *p) { free(p); }
void plugin_throw(int n) { throw n; }
}
"""


@pytest.mark.parametrize("mode", ["RTLD_LOCAL", "RTLD_GLOBAL", "RTLD_DEEPBIND"])
def test_storms_of_dlopen_and_dlclose_in_several_threads(mode: str, tmp_path: Path) -> None:
    plugins = [c(PLUGIN + f"\nint number{i};", "-shared", "-fpic", f"-DLOCAL={16 << i}") for i in range(4)]
    program = c(
        f"""
static char **names;
static void *work(void *x) {{
    for (int i = 0; i < 150; i++) {{
        void *h = dlopen(names[(i + (long)x) % 4], RTLD_NOW | {mode});
        if (!h) {{ puts(dlerror()); return 0; }}
        void *(*hold)(int) = (void *(*)(int))dlsym(h, "plugin_hold");
        void (*give)(void *) = (void (*)(void *))dlsym(h, "plugin_free");
        for (int k = 0; k < 20; k++) give(hold(k + 1));
        if (i % 50 == 0) sink = hold(100);
        dlclose(h);
    }}
    return 0;
}}
int main(int argc, char **argv) {{
    pthread_t t[6];
    names = argv + 1;
    for (long i = 0; i < 6; i++) pthread_create(&t[i], 0, work, (void *)i);
    for (int i = 0; i < 6; i++) pthread_join(t[i], 0);
    puts("done");
}}
""",
        "-O1",
    )
    ran = same([program, *plugins])
    profile = ran.profile()
    sums = [0, 0]
    for account_id, (n_bytes, n_blocks) in profile.composition(len(profile.snapshots) - 1).items():
        account = profile.accounts[account_id]
        names = [profile.frame(f).function for f in profile.stack(account.node)]
        if "plugin_hold" in names and "__tls_get_addr" not in names:
            sums[0] += n_bytes
            sums[1] += n_blocks
    assert sums == [1800, 18]


CUDA_OF_ITS_OWN = """
#ifdef BODY
static char memory[1 << 24];
int cudaMalloc(void **p, size_t n) { static size_t used; *p = memory + used; used += n; return 0; }
#endif
int cudaMalloc(void **p, size_t n);
#ifdef CALLER
void *take(size_t n) {
#ifdef BY_ADDRESS
    int (*volatile cudaMalloc_)(void **, size_t) = cudaMalloc;
#define cudaMalloc cudaMalloc_
#endif
    void *p;
    return cudaMalloc(&p, n) ? 0 : p;
}
#endif
#ifdef EXPORTS_NOTHING
static void *early;
__attribute__((constructor)) static void begin(void) { cudaMalloc(&early, 1 << 20); }
#endif
#ifdef MAIN
void *take(size_t n);
int main(void) { printf("%d\\n", take(1 << 20) != 0); return 0; }
#endif
#ifdef EMPTY_MAIN
int main(void) { puts("1"); return 0; }
#endif
"""


@pytest.mark.parametrize(
    "flags",
    [
        (),
        ("-Wl,--hash-style=sysv",),
        ("-Wl,-z,lazy",),
        ("-no-pie", "-rdynamic"),
        ("-no-pie", "-fno-pic", "-DBY_ADDRESS"),
    ],
)
@pytest.mark.parametrize(
    "parts",
    [
        ("BODY CALLER", "MAIN"),
        ("BODY", "CALLER MAIN"),
        ("BODY", "CALLER", "MAIN"),
        ("BODY", "EXPORTS_NOTHING", "EMPTY_MAIN"),
    ],
)
def test_calls_of_cuda_are_found_in_objects_of_all_kinds(flags: Sequence[str], parts: Sequence[str]) -> None:
    """Called by name where they are defined, by a library that exports others, by a program that exports nothing."""
    made: List[Path] = []
    for part in parts:
        kind = flags if "MAIN" in part else [*[f for f in flags if f[1] in "WD"], "-shared", "-fpic"]
        links = [f"-Wl,--no-as-needed,-rpath,{library.parent},{library}" for library in made]
        made.append(c(CUDA_OF_ITS_OWN, *kind, *[f"-D{name}" for name in part.split()], *links))
    ran = same([made[-1]], "--heap=no")
    profile = ran.profile()
    assert (ran.done.stdout, profile.snapshots[-1].device) == ("1\n", 1 << 20)


def test_without_the_heap_libraries_that_come_later_call_malloc_directly() -> None:
    plugin = c(
        "void *plugin_functions[] = {malloc, calloc, realloc, free, aligned_alloc, mmap};"
        'void *operator_new(void) __asm__("_Znwm"); void *plugin_new(void) { return operator_new; }',
        "-shared",
        "-fpic",
        "-lstdc++",
    )
    program = c(
        """
int main(int argc, char **argv) {
    Dl_info at;
    void *plugin = dlopen(argv[1], RTLD_NOW), **f = dlsym(plugin, "plugin_functions");
    for (int i = 0; i < 6; i++) dladdr(f[i], &at), puts(strrchr(at.dli_fname, '/') + 1);
    dladdr(((void *(*)(void))dlsym(plugin, "plugin_new"))(), &at), puts(strrchr(at.dli_fname, '/') + 1);
    return 3;
}
"""
    )
    for heap, name in (("--heap=no", "libc.so.6"), ("--heap=yes", "libjmassif-native.so")):
        done = record_one([program, plugin], heap)
        *functions, mmap, new = done.stdout.split()
        assert (done.returncode, functions, mmap) == (3, [name] * 5, "libjmassif-native.so")
        assert new.startswith("libstdc++.so") == (heap == "--heap=no")


def test_a_library_is_told_though_the_kernel_maps_memory_unseen_while_it_is_loaded() -> None:
    """Whoever finds such a mapping runs on no thread of the program, and leaves its calls open."""
    plugin = c(
        """
__attribute__((constructor)) static void begin(void) {
    sink = (void *)syscall(SYS_mmap, 0, 8 << 20, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(sink, 1, 8 << 20);
    for (int i = 0; i < 30; i++) usleep(10000);
}
""",
        "-shared",
        "-fpic",
    )
    program = c('int main(int argc, char **argv) { printf("%d\\n", dlopen(argv[1], RTLD_NOW) != 0); }')
    ran = same([program, plugin], "--pages=yes")
    assert [scope.name for scope in ran.profile().scopes] == [f"dlopen {plugin.name}"]


# Memory that was freed cannot be read. The loader keeps libraries' names in the program's memory.
STRICT_MALLOC = """
static char memory[64 << 20] __attribute__((aligned(4096))), *next = memory;
void *malloc(size_t n) {
    size_t *p = (size_t *)next;
    next += 4096 + ((n + 4095) & -4096L);
    p[0] = n;
    return (char *)p + 4096;
}
void free(void *p) { if (p) mprotect((char *)((size_t)p & -4096L), (((size_t *)((char *)p - 4096))[0] + 4095) & -4096L, PROT_NONE); }
void *calloc(size_t n, size_t m) { return malloc(n * m); }
void *realloc(void *p, size_t n) {
    void *to = malloc(n);
    size_t was = p ? ((size_t *)((char *)p - 4096))[0] : 0;
    if (p) memcpy(to, p, was < n ? was : n);
    free(p);
    return to;
}
"""


def test_a_library_may_be_loaded_where_one_like_it_was(tmp_path: Path) -> None:
    plugin = c(PLUGIN, "-shared", "-fpic", "-DLOCAL=16")
    for name in ("one.so", "two.so"):
        (tmp_path / name).write_bytes(plugin.read_bytes())
    program = c(
        STRICT_MALLOC
        + """
int main(int argc, char **argv) {
    // As if other threads made these calls between two looks at the loader's list.
    void *libc = dlopen("libc.so.6", RTLD_NOW), *(*load)(char *, int) = dlsym(libc, "dlopen");
    void (*unload)(void *) = dlsym(libc, "dlclose"), *first = dlopen(argv[1], RTLD_NOW), *at = dlsym(first, "plugin_hold");
    unload(first);
    void *second = load(argv[2], RTLD_NOW);
    printf("%d\\n", dlsym(second, "plugin_hold") == at);
    printf("%d\\n", dlopen("libm.so.6", RTLD_NOW) != NULL);
}
""",
        "-ldl",
    )
    assert same([program, tmp_path / "one.so", tmp_path / "two.so"]).done.stdout == "1\n1\n"


def test_static_storage_of_threads_may_be_used_up() -> None:
    plugins = [
        c(PLUGIN + f"\nint number{i};", "-shared", "-fpic", "-ftls-model=initial-exec", "-DLOCAL=300") for i in range(8)
    ]
    program = c(
        """
int main(int argc, char **argv) {
    int n = 0;
    for (int i = 1; i < argc; i++) if (dlopen(argv[i], RTLD_NOW)) n++;
    printf("%d\\n", n);
}
"""
    )
    same([program, *plugins])


PRELOADS = ["libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2"]
STORM = """
#include <vector>
#include <string>
#include <stdexcept>
#include <cstdlib>
#include <cstdio>
#include <cstring>
#include <malloc.h>
#include <thread>
__attribute__((noinline)) static void *hold(size_t n) { return malloc(n); }
struct alignas(128) Wide { char bytes[100]; };
static void *volatile sink, *volatile kept;
__attribute__((noinline)) static void *made(int n) { delete new Wide; sink = new Wide; return new char[n + 50]; }
static void deep(int n) { std::string s(n + 20, 'x'); if (n == 0) throw std::runtime_error(s); deep(n - 1); }
struct Late { std::vector<int> v; ~Late() { v.clear(); v.shrink_to_fit(); free(malloc(99)); } };
static Late late;
static thread_local Late of_thread;
static void work() {
    of_thread.v.assign(1000, 1);
    int caught = 0;
    for (int i = 0; i < 300; i++) {
        try { deep(i % 20); } catch (std::exception const &e) { caught += strlen(e.what()) > 0; }
        void *p = calloc(i, 3);
        p = realloc(p, i * 7 + 1);
        void *q = nullptr;
        if (posix_memalign(&q, 64, i + 1)) abort();
        if ((size_t)q % 64) abort();
        free(q);
        q = aligned_alloc(256, 256);
        if ((size_t)q % 256) abort();
        free(q);
        free(p);
        delete new std::vector<int>(i);
        delete[] new char[i];
        if (i % 100 == 0) kept = made(i);
        free(hold(i * 5000));
    }
    if (caught != 300) abort();
    sink = hold(1234);
}
int main() {
    late.v.assign(100, 2);
    atexit([] { free(hold(10)); });
    std::vector<std::thread> t;
    for (int i = 0; i < 4; i++) t.emplace_back(work);
    for (auto &x : t) x.join();
    work();
    puts("done");
    return 9;
}
"""


@pytest.mark.parametrize("name", ["", *PRELOADS])
def test_the_user_s_own_allocator_and_preloads_stay(name: str) -> None:
    if name and not Path(f"/usr/lib/x86_64-linux-gnu/{name}").exists():
        pytest.skip(f"{name} is not installed")
    program = compile_c(STORM, "-O1", "-w", "-pthread", suffix=".cc")
    ran = same([program], env={"LD_PRELOAD": f"/usr/lib/x86_64-linux-gnu/{name}"} if name else {})
    at_end = held(ran.profile(), program)
    assert at_end["hold(unsigned long)"] == (6170, 5)
    assert at_end["made(int)"] == (5 * (3 * (50 + 128) + 300), 30)


OWN_MALLOC = """
#include <stddef.h>
#include <string.h>
static char room[1 << 24] __attribute__((aligned(16)));
static size_t used;
void *malloc(size_t n) { size_t at = __atomic_fetch_add(&used, (n + 31) & ~15UL, __ATOMIC_RELAXED); *(size_t *)(room + at) = n; return room + at + 16; }
void free(void *p) {}
void *calloc(size_t n, size_t m) { return memset(malloc(n * m), 0, n * m); }
void *realloc(void *p, size_t n) { void *q = malloc(n); if (p) memcpy(q, p, ((size_t *)p)[-2] < n ? ((size_t *)p)[-2] : n); return q; }
"""


@pytest.mark.parametrize("flags", [(), ("-static-libgcc", "-rdynamic"), ("-Wl,-z,now", "-no-pie")])
def test_a_program_may_have_a_malloc_of_its_own(flags: Sequence[str]) -> None:
    program = c(
        OWN_MALLOC
        + 'int main(void) { for (int i = 0; i < 100; i++) sink = realloc(malloc(i), 2 * i); puts("done"); return 1; }',
        *flags,
    )
    same([program])


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_a_program_with_a_sanitizer(compiler: str) -> None:
    program = compile_c(
        HEAD
        + 'int main(void) { for (int i = 0; i < 1000; i++) free(malloc(i)); sink = malloc(10); printf("%d\\n", 1); sink = 0; return 0; }',
        "-fsanitize=address",
        "-w",
        compiler=compiler,
    )
    alone = run([program])
    with tempfile.TemporaryDirectory(prefix="jmassif-test-") as directory:
        done = run([*record_command(Path(directory)), program], env={"ASAN_OPTIONS": "verify_asan_link_order=0"})
    assert (done.returncode, done.stdout) == (alone.returncode, alone.stdout), done.stderr


# ---- system calls that are not allowed -------------------------------------------------------

CONFINED = """
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
static int work(void) {
    int n = 0;
    for (int i = 1; i < 3000; i++) { char *p = malloc(i % 3000); p[0] = 1; n += p[0]; free(p); }
    return n;
}
static void *nothing(void *x) { return x; }
#define ALLOW(name) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
static struct sock_filter filter[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    ALLOW(write), ALLOW(brk), ALLOW(mmap), ALLOW(munmap), ALLOW(exit_group), ALLOW(exit),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
int main(void) {
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    setvbuf(stdout, 0, _IONBF, 0);
    printf("%d\\n", work());
    printf("%d\\n", prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, 0, 0, 0));
    printf("%d\\n", work());
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (CONFINE) return 1;
    char text[10] = {'0' + work() / 1000, '\\n'};
    write(1, text, 2);
    END;
}
"""


@pytest.mark.parametrize(
    "way",
    [
        ("prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT, 0, 0, 0)", "syscall(SYS_exit, 4)"),
        ("prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0)", "exit(5)"),
        ("syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program)", "exit(6)"),
    ],
)
def test_a_program_that_confines_itself_is_not_killed_for_the_recorder_s_calls(way: Tuple[str, str]) -> None:
    program = c(CONFINED, f"-DCONFINE={way[0]}", f"-DEND={way[1]}", "-O1")
    alone = run([program])
    assert alone.returncode > 0
    done = record_one([program])
    assert (done.returncode, done.stdout) == (alone.returncode, alone.stdout)
    assert "seccomp: the recording ends here" in done.stderr


# ---- Python ----------------------------------------------------------------------------------

SCRIPT = """
import asyncio, multiprocessing, os, signal, subprocess, sys, threading
def work():
    for i in range(30):
        b = bytearray(100000); sorted(range(500)); bytes(3000).hex()
def alarm(*_):
    raise KeyError("alarm")
async def child():
    p = await asyncio.create_subprocess_exec("sh", "-c", "echo hello; exit 4", stdout=-1)
    return await p.communicate(), p.returncode
def spin():
    while True:
        [bytes(i) for i in range(1000)]
def square(n):
    return n * n
def main():
    threads = [threading.Thread(target=work) for _ in range(4)]
    [t.start() for t in threads]; [t.join() for t in threads]
    print(subprocess.check_output([sys.executable, "-c", "print(1)"]), subprocess.call(["sh", "-c", "exit 3"]))
    print(subprocess.run(["cat"], input=b"x" * 100000, stdout=subprocess.PIPE).stdout == b"x" * 100000)
    if sys.version_info >= (3, 7):
        print(asyncio.run(child()))
    signal.signal(signal.SIGALRM, alarm)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        spin()
    except KeyError as e:
        print(e, flush=True)
    pid = os.fork()
    if pid == 0:
        [bytes(i) for i in range(1000)]; os._exit(5)
    print(os.waitpid(pid, 0)[1])
    for way in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(way).Pool(2) as pool: print(way, sum(pool.map(square, range(100))))
    print("done")
    sys.exit(7)
if __name__ == "__main__":
    main()
"""
PYTHONS = sorted((Path.home() / ".pyenv" / "versions").glob("3.*/bin/python3"))


@pytest.mark.parametrize("python", [Path(PYTHON), *PYTHONS], ids=[path.parts[-3] for path in (Path(PYTHON), *PYTHONS)])
def test_python_with_children_of_every_kind_threads_and_signals(python: Path) -> None:
    script = written(SCRIPT, "children.py")
    same([python, "-W", "error", script], timeout=120)


# ---- the end ---------------------------------------------------------------------------------


def test_a_program_that_is_killed_inside_the_recorder_leaves_nobody_behind() -> None:
    """Stopped first, so that the keeper waits for the recorder's lock as the signal comes."""
    program = c("int main(void) { for (;;) free(sink = malloc(1000)); }", "-O1")
    for _ in range(6):
        with tempfile.TemporaryDirectory(prefix="jmassif-test-") as directory:
            command, environment = recorder(f"{directory}/trace.%p", ["-q"], host="native")
            child = subprocess.Popen([*map(str, command), str(program)], stdout=subprocess.PIPE)
            time.sleep(0.3)
            child.send_signal(signal.SIGSTOP)
            time.sleep(0.4)
            child.send_signal(signal.SIGKILL)
            assert child.communicate(timeout=10) == (b"", None)


def test_a_killed_program_s_trace_lacks_half_a_second_at_most() -> None:
    program = c(
        """
__attribute__((noinline)) static void *hold(int n) { return malloc(n); }
int main(void) {
    setvbuf(stdout, 0, _IONBF, 0);
    for (int i = 0;; i++) {
        struct timespec t;
        sink = hold(1000);
        clock_gettime(CLOCK_MONOTONIC, &t);
        printf("%ld\\n", t.tv_sec * 1000 + t.tv_nsec / 1000000);
        usleep(i / 50 % 2 ? 100 : 20000);
    }
}
""",
        "-O1",
    )
    repeats = int(os.environ.get("JMASSIF_KILLS", "6"))
    for i in range(repeats):
        with tempfile.TemporaryDirectory(prefix="jmassif-test-") as directory:
            command, environment = recorder(f"{directory}/trace.%p", ["-q"], host="native")
            child = subprocess.Popen([*map(str, command), str(program)], stdout=subprocess.PIPE)
            time.sleep(0.2 + random.random() * 1.5)
            child.send_signal(signal.SIGKILL)
            assert child.stdout is not None
            told = [int(line) for line in child.stdout.read().split(b"\n")[:-1]]
            child.wait()
            (trace,) = Path(directory).glob("trace.*")
            profile = load_file(str(trace))
            blocks = held(profile, program).get("hold", (0, 0))[1] if profile.snapshots else 0
            due = sum(at < told[-1] - 500 for at in told)
            assert due <= blocks <= len(told) + 1, (i, due, blocks, len(told))


def tortured(seed: int, rounds: int = 2000, seconds: int = 0) -> None:
    """Compares what the program holds at the end with the trace. Traces of its children go at once."""
    program = compile_c(Path(__file__).parent / "torture.cc", "-O1", "-pthread")
    plugins = [c(PLUGIN + f"\nint number{i};", "-shared", "-fpic", f"-DLOCAL={16 << i}") for i in range(3)]
    plugins.append(c(PLUGIN_THAT_THROWS, "-shared", "-fpic", suffix=".cc"))
    with tempfile.TemporaryDirectory(prefix="jmassif-test-") as directory:
        command, environment = recorder(f"{directory}/trace.%p", ["-q", "--pages=no"], host="native")
        arguments = [program, str(seed), str(rounds), str(seconds), *plugins]
        with subprocess.Popen(
            list(map(str, [*command, *arguments])),
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            universal_newlines=True,
        ) as process:
            own = f"trace.{process.pid}"
            while process.poll() is None:
                time.sleep(0.1)
                for trace in Path(directory).glob("trace.*"):
                    if trace.name != own and trace.stat().st_mtime < time.time() - 10:
                        trace.unlink()
            assert process.stdout and process.stderr
            stdout, stderr = process.stdout.read(), process.stderr.read()
        others = [line for line in stderr.splitlines() if "went on during the fork" not in line]
        assert (process.returncode, others) == (0, []), (seed, stderr)
        n_bytes, n_blocks = map(int, stdout.split())
        assert held(load_file(f"{directory}/{own}"), program)["hold(void*, unsigned long)"] == (n_bytes, n_blocks), seed


def test_many_threads_at_random_are_counted_as_the_program_counts() -> None:
    for seed in range(int(os.environ.get("JMASSIF_TORTURES", "3"))):
        tortured(seed)


def test_no_thread_hangs_as_long_as_it_runs() -> None:
    seconds = int(os.environ.get("JMASSIF_TORTURE_SECONDS", "5"))
    tortured(1000, rounds=1, seconds=seconds)


CAN_BE_READ = """
#include "base/kernel.h"
#include <stdio.h>
#include <sys/mman.h>
int main(void)
{
    char *page = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(page + 4096, 4096);
    printf("%d%d%d", jm_kernel_can_read((Addr)page), jm_kernel_can_read((Addr)page + 4096), jm_kernel_can_read(0));
}
"""


def test_the_kernel_is_asked_what_can_be_read_also_at_address_zero(tmp_path: Path) -> None:
    """NULL is an argument of its own to many system calls; whoever takes it for memory reads all mappings again."""
    (tmp_path / "ask.c").write_text(CAN_BE_READ)
    sources = [tmp_path / "ask.c", ROOT / "jmassif/base/kernel.c"]
    check_run(["gcc", f"-I{ROOT / 'jmassif'}", "-D_GNU_SOURCE", "-w", *sources, "-o", tmp_path / "ask"])
    assert run([tmp_path / "ask"]).stdout == "100"


RACED = ["host/native/thread.c", "host/native/memory.c", "base/kernel.c", "base/table.c", "ledger/ledger.c"]
RACED += ["heap/blocks.c", "base/map.c", "attribution/kind.c"]


@pytest.mark.parametrize("fault", ["", "BEYOND", "UNLOCKED_FORK"])
def test_the_lock_guards_the_ledger_also_during_a_fork(fault: str, tmp_path: Path) -> None:
    """By ThreadSanitizer, which sees a race whether or not it does harm, and by what children of a fork add up."""
    sources = [ROOT / "tests/native/lock_race.c", *(ROOT / "jmassif" / path for path in RACED)]
    includes = [f"-I{ROOT / 'jmassif'}", "-D_GNU_SOURCE", "-w", "-g", "-O1", "-pthread"]
    check_run(["gcc", "-fsanitize=thread", *includes, f"-D{fault or 'WHOLE'}", *sources, "-o", tmp_path / "race"])
    done = run([tmp_path / "race"], timeout=120)
    found = set(re.findall(r"data race .*/(ledger\.c|blocks\.c|table\.c)", done.stderr))
    assert bool(found) == ("data race" in done.stderr) == (fault == "BEYOND"), done.stderr
    assert ("half done" in done.stderr) == (fault == "UNLOCKED_FORK"), done.stderr
    if not fault:
        # 8 threads keep the last 16 of 20,000 blocks, which are one byte larger each.
        assert (done.returncode, done.stdout, done.stderr) == (0, f"160000 {8 * sum(range(19985, 20001))} 1\n", "")
