# SPDX-License-Identifier: GPL-2.0-or-later
"""--code-cache: the next run finds the translations, and does what the program does without Valgrind.

Whatever is in the cache, the results are the program's own: what a test expects comes from the program run alone.
"""

import functools
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence

import pytest

from tests.fuzz import caches
from tests.harness import ARCH, BUILD, PYTHON, VALGRIND, Argument, Recording, compile_c, record, run
from tests.tool.programs import finish, library, linked_to, start

# Integers, floating point, vectors, strings, allocation, a sort: results of every instruction count.
WORKS = r"""
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}
int main(void)
{
    enum { N = 3000 };
    double *values = malloc(N * sizeof *values), sum = 0;
    unsigned state = 12345;
    char text[64], all[N * 8] = "";
    for (int i = 0; i < N; i++) {
        state = state * 1103515245u + 12345u;
        values[i] = sin(state) * exp(i * 1e-3) + cbrt(i) + fma(i, 0.1, state % 7);
    }
    qsort(values, N, sizeof *values, by_value);
    for (int i = 0; i < N; i++) {
        sum = sum / 2 + values[i];
        snprintf(text, sizeof text, "%.3g,", values[i]);
        if (i % 100 == 0)
            strcat(all, text);
    }
    time_t day = 86400 * 365;
    strftime(text, sizeof text, "%A %d %B %Y", gmtime(&day));
    char *copy = strdup(all);
    printf("%.17g %s %s %zu\n", sum, copy, text, strlen(strstr(copy, ",") + 1));
    free(copy);
    free(values);
    return 3;
}
"""

SCRIPT = """
import ctypes, decimal, hashlib, json, re, struct, zlib
text = json.dumps({str(i): [i ** 3, i / 7, "x" * (i % 5)] for i in range(300)}, sort_keys=True)
print(hashlib.sha256(text.encode()).hexdigest(), zlib.crc32(text.encode()), decimal.Decimal(2).sqrt())
print(len(re.findall(r"[0-9]+[.][0-9]*5", text)), struct.pack("<df", 1 / 3, 2 / 3).hex(), sum(map(float, range(999))))
"""


class Counts(NamedTuple):
    found: int
    missing: int
    refused: int
    kept: int


def works() -> Path:
    return compile_c(WORKS, "-O2", "-lm")


def cached(
    command: Sequence[Argument],
    cache: Path,
    *options: str,
    env: Optional[Mapping[str, str]] = None,
    cwd: Optional[Path] = None,
) -> Recording:
    return record(command, [f"--code-cache={cache}", "--stats=yes", *options], env=env, cwd=cwd)


def counts(recording: Recording) -> Counts:
    found = re.findall(r"translations: (\d+) found, (\d+) missing, (\d+) refused, (\d+) kept", recording.stderr)
    assert found, recording.stderr
    return Counts(*map(int, found[-1]))


def share_found(recording: Recording) -> float:
    n = counts(recording)
    return n.found / (n.found + n.missing)


def assert_same(recording: Recording, command: Sequence[Argument], env: Optional[Mapping[str, str]] = None) -> None:
    alone = run(command, env=env)
    assert (recording.returncode, recording.stdout) == (alone.returncode, alone.stdout), recording.stderr


def code_file(cache: Path) -> Path:
    (found,) = cache.glob("*.code")
    return found


# ---- what is found -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [[], ["--time-unit=i"], ["--heap=no"]], ids=" ".join)
def test_the_second_run_translates_nothing_again(tmp_path: Path, options: List[str]) -> None:
    first, second = cached([works()], tmp_path, *options), cached([works()], tmp_path, *options)
    assert counts(first).found == 0 and counts(first).kept > 1000
    assert counts(second).found > 1000 and share_found(second) > 0.99
    assert_same(second, [works()])


def test_libraries_are_where_they_were_whatever_was_allocated_before(tmp_path: Path) -> None:
    cache, elsewhere = tmp_path / "cache", tmp_path / "elsewhere"
    elsewhere.mkdir()
    cached([PYTHON, "-c", SCRIPT], cache, env={"PYTHONHASHSEED": "random"})
    more = {f"VARIABLE_{i}": "x" * 100 * i for i in range(10)}
    second = cached([PYTHON, "-c", SCRIPT], cache, env={"PYTHONHASHSEED": "random", **more}, cwd=elsewhere)
    assert share_found(second) >= 0.98
    assert_same(second, [PYTHON, "-c", SCRIPT])


def test_what_is_recorded_is_the_same(tmp_path: Path) -> None:
    """Instructions are counted by code that is put into superblocks, and allocations are answered by such code."""
    options = ["--time-unit=i", "--interval=1"]
    without = record([works()], options).profile
    for _ in range(2):
        again = cached([works()], tmp_path, *options).profile
        assert again.last_time > 100000
        assert again.snapshots[-1].by_kind == without.snapshots[-1].by_kind
        assert sorted(again.counts().values()) == sorted(without.counts().values())
        # The loader's own way through the symbols depends on where libraries are.
        assert again.last_time == pytest.approx(without.last_time, rel=0.001)


def test_options_that_change_superblocks_have_files_of_their_own(tmp_path: Path) -> None:
    cached([works()], tmp_path)
    other = cached([works()], tmp_path, "--vex-guest-max-insns=10")
    assert counts(other).found == 0
    assert len(list(tmp_path.glob("*.code"))) == 2
    assert share_found(cached([works()], tmp_path, "--depth=5", "--max-snapshots=50")) > 0.98


def test_nothing_is_kept_when_that_is_not_wanted(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path), "XDG_CACHE_HOME": ""}
    record([works()], ["--code-cache=no"], env=home)
    record([works()], [f"--code-cache={tmp_path}/cache", "--vex-guest-chase=yes"], env=home)
    assert list(tmp_path.iterdir()) == []
    record([works()], [], env=home)
    assert [path.name for path in tmp_path.iterdir()] == [".cache"]


# ---- other code at the same place --------------------------------------------------------------------------

VERSION = "int version(void) {{ return {}; }}"
ASKS = '#include <stdio.h>\nint version(void);\nint main(void) { return printf("%d\\n", version()) < 0; }'


def test_a_library_that_was_rebuilt_in_place_is_translated_anew(tmp_path: Path) -> None:
    """Same file, same size, same times, another number in it."""
    built = {n: library(VERSION.format(n), "libversion.so") for n in (1111, 2222)}
    lib = tmp_path / "libversion.so"
    shutil.copy(str(built[1111]), str(lib))
    program = [compile_c(ASKS, str(lib), f"-Wl,-rpath,{tmp_path}")]
    times = lib.stat()
    assert cached(program, tmp_path / "cache").stdout == "1111\n"
    with lib.open("r+b") as file:
        file.write(built[2222].read_bytes())
    os.utime(str(lib), ns=(times.st_atime_ns, times.st_mtime_ns))
    for is_first in (True, False):
        second = cached(program, tmp_path / "cache")
        assert second.stdout == "2222\n"
        assert (counts(second).missing > 0) == is_first


def test_a_program_that_is_built_again_and_again_is_found(tmp_path: Path) -> None:
    """Each build has other code at the same address, and the last one is what counts."""
    flags = ["-no-pie"] if ARCH == "amd64" else []
    for n in range(11):
        program = compile_c(f'#include <stdio.h>\nint main(void) {{ return printf("%d", {1000 + n}) < 0; }}', *flags)
        assert cached([program], tmp_path).stdout == str(1000 + n)
    again = cached([program], tmp_path)
    assert again.stdout == "1010"
    assert share_found(again) > 0.98


IS_REPLACED = r"""
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv) /* the library, what replaces it, how */
{
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    printf("%d ", ((int (*)(void))dlsym(library, "version"))());
    if (strcmp(argv[3], "rename") == 0) {
        if (rename(argv[2], argv[1]) != 0)
            return 1;
    } else {
        static char bytes[1 << 20];
        int from = open(argv[2], O_RDONLY), to = open(argv[1], O_WRONLY);
        ssize_t n = read(from, bytes, sizeof bytes);
        if (n <= 0 || pwrite(to, bytes, n, 0) != n)
            return 2;
    }
    printf("%d\n", ((int (*)(void))dlsym(library, "other"))());
    return 0;
}
"""


@pytest.mark.parametrize("how", ["rename", "rewrite"])
def test_a_library_that_is_replaced_while_it_is_mapped(tmp_path: Path, how: str) -> None:
    """Renamed over, the program goes on with the old one; written into, with the new one's code."""
    text = "int version(void) {{ return {0}; }} __attribute__((aligned(8192))) int other(void) {{ return {0} + 1; }}"
    built = {n: library(text.format(n), "libversion.so") for n in (1111, 2222)}
    lib, spare = tmp_path / "libversion.so", tmp_path / "spare.so"
    program = compile_c(IS_REPLACED, "-ldl")

    def begin(first: int, then: int) -> List[Argument]:
        for path, n in ((lib, first), (spare, then)):
            shutil.copy(str(built[n]), str(path.with_suffix(".new")))
            path.with_suffix(".new").rename(path)
        return [program, lib, spare, how]

    for first, then in ((1111, 2222), (1111, 2222), (2222, 1111), (1111, 1111), (1111, 2222)):
        alone = run(begin(first, then))
        assert alone.stdout == f"{first} {(first if how == 'rename' else then) + 1}\n"
        assert cached(begin(first, then), tmp_path / "cache").stdout == alone.stdout


TWO_VERSIONS = r"""
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    for (int round = 0; round < 2; round++)
        for (int i = 1; i < argc; i++) {
            void *library = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL), *version = dlsym(library, "version");
            printf("%d ", ((int (*)(void))version)());
            fprintf(stderr, "at %p\n", version);
            if (round == 0)
                dlclose(library);
        }
    return 0;
}
"""


def test_two_versions_of_a_library_in_one_program(tmp_path: Path) -> None:
    program = compile_c(TWO_VERSIONS, "-ldl")
    for n in (1111, 2222):
        (tmp_path / str(n)).mkdir()
        shutil.copy(str(library(VERSION.format(n), "libversion.so")), str(tmp_path / str(n) / "libversion.so"))
    paths = [tmp_path / str(n) / "libversion.so" for n in (1111, 2222)]
    for order in (paths, paths[::-1], paths):
        again = cached([program, *order], tmp_path / "cache")
        assert_same(again, [program, *order])
        first, second, *_ = re.findall(r"^at (\w+)", again.stderr, re.MULTILINE)
        assert first != second


MAKES_CODE = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#if defined(__x86_64__)
static size_t make(unsigned char *code, unsigned n) /* mov $n, %eax; ret */
{
    code[0] = 0xb8;
    memcpy(code + 1, &n, 4);
    code[5] = 0xc3;
    return 6;
}
#else
static size_t make(unsigned char *code, unsigned n) /* movz w0, #n; ret */
{
    unsigned words[2] = {0x52800000u | (n & 0xffff) << 5, 0xd65f03c0u};
    memcpy(code, words, sizeof words);
    return sizeof words;
}
#endif
int main(int argc, char **argv)
{
    unsigned first = atoi(argv[1]);
    int fds[] = {-1, memfd_create("code", 0), open(argv[2], O_RDWR | O_CREAT | O_TRUNC, 0700)};
    for (int i = 0; i < 3; i++) {
        unsigned char code[16];
        size_t n = make(code, first + i);
        if (fds[i] >= 0 && write(fds[i], code, n) != (ssize_t)n)
            return 1;
        int flags = fds[i] < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
        int protection = PROT_READ | PROT_EXEC | (fds[i] < 0 ? PROT_WRITE : 0);
        void *at = mmap(NULL, 4096, protection, flags, fds[i], 0);
        if (at == MAP_FAILED)
            return 2;
        if (fds[i] < 0)
            memcpy(at, code, n);
        __builtin___clear_cache(at, (char *)at + n);
        printf("%d ", ((int (*)(void))at)());
    }
    return 0;
}
"""


def test_code_that_a_program_makes_is_what_it_has_made_this_time(tmp_path: Path) -> None:
    program = compile_c(MAKES_CODE)
    for n in (100, 200, 200, 300):
        again = cached([program, str(n), tmp_path / "made"], tmp_path / "cache")
        assert (again.returncode, again.stdout) == (0, f"{n} {n + 1} {n + 2} "), again.stderr


AT_THE_END = r"""
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#if defined(__x86_64__)
static const unsigned char code[14] = {0xb8, 77, 0, 0, 0, 0xc3}; /* mov $77, %eax; ret; the core reads 4 bytes more */
#else
static const unsigned code[3] = {0x52800000u | 77 << 5, 0xd65f03c0u}; /* movz w0, #77; ret */
#endif
int main(int argc, char **argv)
{
    size_t page = sysconf(_SC_PAGESIZE);
    int fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0700);
    if (ftruncate(fd, page) != 0 || pwrite(fd, code, sizeof code, page - sizeof code) != sizeof code)
        return 1;
    char *at = mmap(NULL, 2 * page, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    printf("%d\n", ((int (*)(void))(at + page - sizeof code))());
    return 0;
}
"""


def test_code_near_the_end_of_a_file(tmp_path: Path) -> None:
    """Behind it is a page that is mapped and cannot be read."""
    program = [compile_c(AT_THE_END), tmp_path / "code"]
    for _ in range(2):
        again = cached(program, tmp_path / "cache")
        assert (again.returncode, again.stdout) == (0, "77\n"), again.stderr


# ---- damage ------------------------------------------------------------------------------------------------


@pytest.fixture(name="kept", scope="module")
def _kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    cache = tmp_path_factory.mktemp("kept")
    cached([works()], cache)
    return cache


@pytest.mark.parametrize("damage", caches.DAMAGES, ids=[damage.__name__ for damage in caches.DAMAGES])
def test_what_was_damaged_is_mended(tmp_path: Path, kept: Path, damage: caches.Damage) -> None:
    """Hundreds of places at once: each record has its own checksum."""
    shutil.copytree(str(kept), str(tmp_path / "cache"))
    data = bytearray(code_file(kept).read_bytes())
    chance = random.Random(2026)
    for _ in range(5):
        damage(data, bytes(range(256)) * 256, chance)
    code_file(tmp_path / "cache").write_bytes(data)
    after = cached([works()], tmp_path / "cache")
    assert_same(after, [works()])
    assert counts(after).kept > 0 or damage is caches.twice  # which leaves all that there was
    again = cached([works()], tmp_path / "cache")
    assert_same(again, [works()])
    assert share_found(again) > 0.9


def test_a_record_of_another_build_is_not_taken(tmp_path: Path, kept: Path) -> None:
    """Its file renamed to ours."""
    cached([works()], tmp_path, "--vex-iropt-level=0")
    shutil.copy(str(code_file(tmp_path)), str(tmp_path / code_file(kept).name))
    after = cached([works()], tmp_path)
    assert counts(after).found == 0
    assert_same(after, [works()])


# ---- whose directory ---------------------------------------------------------------------------------------


def cache_in(home: Path, *options: str, **more: str) -> Recording:
    env = {"HOME": str(home), "XDG_CACHE_HOME": "", **more}
    return record([works()], ["--code-cache=yes", "-q", *options], env=env)


def said(recording: Recording) -> List[str]:
    return [line for line in recording.stderr.splitlines() if "jmassif" in line]


def test_the_cache_is_the_users_alone(tmp_path: Path) -> None:
    silent = cache_in(tmp_path)
    cache = tmp_path / ".cache" / "jmassif"
    assert cache.stat().st_mode & 0o7777 == 0o700
    assert {path.stat().st_mode & 0o7777 for path in cache.iterdir()} == {0o600}
    assert silent.stderr == ""
    cache_in(tmp_path, XDG_CACHE_HOME=str(tmp_path / "xdg"))
    assert code_file(tmp_path / "xdg" / "jmassif").stat().st_size > 100000


def refusal(cache: Path) -> str:
    refused = record([works()], [f"--code-cache={cache}"])
    assert_same(refused, [works()])
    lines = [line for line in refused.stderr.splitlines() if "translations are not kept" in line]
    assert len(lines) <= 1
    return lines[0] if lines else ""


def test_a_directory_that_others_may_write_to_is_refused(tmp_path: Path) -> None:
    cached([works()], tmp_path / "cache")
    (tmp_path / "cache").chmod(0o770)
    before = code_file(tmp_path / "cache").stat()
    assert "can be written to by others" in refusal(tmp_path / "cache")
    assert code_file(tmp_path / "cache").stat() == before
    (tmp_path / "cache").chmod(0o700)
    code_file(tmp_path / "cache").chmod(0o606)
    assert "can be written to by others" in refusal(tmp_path / "cache")


def test_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert "is no directory, or a link to one" in refusal(tmp_path / "link")
    assert list((tmp_path / "real").iterdir()) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_directory_of_someone_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir(mode=0o700)
    os.chown(str(tmp_path / "cache"), 12345, 12345)
    assert "belongs to someone else" in refusal(tmp_path / "cache")
    os.chown(str(tmp_path / "cache"), 0, 0)
    cached([works()], tmp_path / "cache")
    os.chown(str(code_file(tmp_path / "cache")), 12345, 12345)
    assert "belongs to someone else" in refusal(tmp_path / "cache")
    # Root in a user's home leaves nothing there.
    os.chown(str(tmp_path), 12345, 12345)
    shutil.rmtree(str(tmp_path / "cache"))
    assert said(cache_in(tmp_path, XDG_CACHE_HOME=str(tmp_path))) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("home", ["", "relative/home", "/nonexistent/home"])
def test_without_a_home_nothing_is_kept(home: str) -> None:
    silent = record([works()], ["--code-cache=yes", "-q"], env={"HOME": home, "XDG_CACHE_HOME": ""})
    assert_same(silent, [works()])
    assert silent.stderr == ""


def test_a_directory_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    assert "cannot be made" in refusal(tmp_path / "not" / "there")


CHANGES_ROOT = r"""
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    if (chroot(argv[1]) != 0 || chdir("/") != 0 || setgid(12345) != 0 || setuid(12345) != 0)
        return 1;
    return printf("%.3f\n", atof("12.5")) < 0;
}
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change its root")
def test_a_program_that_changes_root_and_user_leaves_its_cache_where_it_was(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "tmp").mkdir(parents=True)
    root.chmod(0o777)
    for path in [tmp_path, *tmp_path.parents][:3]:
        path.chmod(path.stat().st_mode | 0o111)
    program = [compile_c(CHANGES_ROOT), root]
    quiet = {"HOME": str(tmp_path), "XDG_CACHE_HOME": ""}
    for _ in range(2):
        again = record(program, ["--code-cache=yes", "--stats=yes"], env=quiet)
        assert (again.returncode, again.stdout) == (0, "12.500\n")
        assert "not kept" not in again.stderr
    assert share_found(again) > 0.98
    assert sorted(path.name for path in root.rglob("*")) == ["tmp"]


# ---- several at once, and ends in between ------------------------------------------------------------------


def start_cached(command: Sequence[Argument], cache: Path, **how: Any) -> "subprocess.Popen[bytes]":
    return start("/dev/null", f"--code-cache={cache}", *command, **how)


def test_eight_processes_that_start_at_once(tmp_path: Path) -> None:
    alone = run([works()])
    for process in [start_cached([works()], tmp_path / "cache", stderr=subprocess.PIPE) for _ in range(8)]:
        assert finish(process)[:2] == alone[:2]
    assert share_found(cached([works()], tmp_path / "cache")) > 0.98


def test_a_run_that_is_killed_leaves_a_readable_cache(tmp_path: Path) -> None:
    chance = random.Random(1)
    cache = tmp_path / "cache"
    for _ in range(6):
        process = start_cached(
            [PYTHON, "-S", "-c", SCRIPT], cache, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        before = time.process_time()
        # When some of it is written, not after some time.
        enough = chance.randrange(1, 1500000)
        while process.poll() is None and sum(path.stat().st_size for path in cache.glob("*.code")) < enough:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=120)
        assert time.process_time() - before < 60
    after = cached([PYTHON, "-S", "-c", SCRIPT], cache)
    assert_same(after, [PYTHON, "-S", "-c", SCRIPT])
    assert counts(after).found > 0 and counts(after).refused == 0
    assert share_found(cached([PYTHON, "-S", "-c", SCRIPT], cache)) > 0.98


FORKS = r"""
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    if (argc > 1)
        return strtol(argv[1], NULL, 16) != 12;
    for (int i = 0; i < 4; i++)
        if (fork() == 0) {
            char text[64];
            time_t day = 86400L * 365 * i;
            strftime(text, sizeof text, i % 2 ? "%c" : "%A", gmtime(&day));
            double x = strtod("0x1.8p3", NULL) + strtol("77", NULL, 8);
            if (i == 3)
                execl(argv[0], argv[0], "c", NULL);
            return !(text[0] && x > 0);
        }
    int status, sum = 0;
    while (wait(&status) > 0)
        sum += status;
    printf("%d\n", sum);
    return 0;
}
"""


def test_forked_children_keep_what_they_translate(tmp_path: Path) -> None:
    program = [compile_c(FORKS)]
    for _ in range(2):
        again = cached(program, tmp_path, "--trace-children=yes")
        assert again.stdout == "0\n"
    every = re.findall(r"translations: (\d+) found, (\d+) missing, 0 refused", again.stderr)
    assert len(every) == 5
    assert sum(int(missing) for _, missing in every) <= 0.02 * sum(int(found) for found, _ in every)


# ---- where it cannot be written ----------------------------------------------------------------------------


def test_a_full_disk_ends_the_writing_alone(tmp_path: Path) -> None:
    """The limit of a file's size stands for it: so far, and then an error."""
    for limit in (1000, 300000, 700000):
        cache = tmp_path / str(limit)
        small = functools.partial(resource.setrlimit, resource.RLIMIT_FSIZE, (limit, limit))
        done = finish(start_cached([works()], cache, stderr=subprocess.PIPE, preexec_fn=small))
        alone = run([works()])
        assert (done.returncode, done.stdout) == (alone.returncode, alone.stdout), done.stderr
        assert "SIGXFSZ" not in done.stderr
        assert all(path.stat().st_size <= limit for path in cache.iterdir())
        assert_same(cached([works()], cache), [works()])


def on_mount(cache: Path, mount: str, *command: Argument) -> "subprocess.CompletedProcess[bytes]":
    """With something mounted on the cache's directory, that nobody else sees."""
    can = subprocess.run(["unshare", "--mount", "sh", "-c", f"mount -t tmpfs none {cache}"], stderr=subprocess.PIPE)
    if can.returncode != 0:
        pytest.skip("nothing can be mounted here")
    valgrind = f"{VALGRIND} --tool=jmassif --stats=yes --jmassif-out-file=/dev/null --code-cache={cache}"
    words = " ".join(map(str, command))
    return subprocess.run(
        ["unshare", "--mount", "sh", "-c", f"{mount} && exec {valgrind} {words}"],
        env={**os.environ, "VALGRIND_LIB": str(BUILD / ".in_place")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
@pytest.mark.parametrize("kib", [4, 300])
def test_a_small_disk_that_is_full(tmp_path: Path, kib: int) -> None:
    (tmp_path / "cache").mkdir()
    done = on_mount(tmp_path / "cache", f"mount -t tmpfs -o size={kib}k,mode=700 none {tmp_path}/cache", works())
    alone = run([works()])
    assert (done.returncode, done.stdout.decode()) == (alone.returncode, alone.stdout)
    assert b"not kept" not in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_a_disk_that_can_only_be_read_serves_what_it_has(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cached([works()], cache)
    before = {path: path.read_bytes() for path in cache.iterdir()}
    only_read = f"mount --bind {cache} {cache} && mount -o remount,bind,ro {cache}"
    done = on_mount(cache, only_read, works())
    alone = run([works()])
    assert (done.returncode, done.stdout.decode()) == (alone.returncode, alone.stdout)
    told = re.search(rb"translations: (\d+) found, (\d+) missing, 0 refused", done.stderr)
    assert told and int(told.group(1)) > 50 * int(told.group(2)), done.stderr
    assert b"not kept" not in done.stderr
    assert {path: path.read_bytes() for path in cache.iterdir()} == before
    (tmp_path / "none").mkdir(mode=0o700)
    empty = on_mount(tmp_path / "none", only_read.replace(str(cache), str(tmp_path / "none")), works())
    assert (empty.returncode, empty.stdout.decode()) == (alone.returncode, alone.stdout)
    assert b"not kept" not in empty.stderr


def test_the_file_keeps_to_its_limit(tmp_path: Path) -> None:
    limit = 1 << 20
    for _ in range(3):
        again = cached([PYTHON, "-S", "-c", SCRIPT], tmp_path, "--code-cache-size=1MiB")
        assert sum(path.stat().st_size for path in tmp_path.glob("*.code")) <= limit
    assert counts(again).found > 1000
    assert_same(again, [PYTHON, "-S", "-c", SCRIPT])


def test_a_full_file_gives_way_to_a_program_that_finds_little_in_it(tmp_path: Path) -> None:
    cached(["perl", "-e", "print join ',', sort map { sprintf '%x', $_ } 1..99"], tmp_path)
    size = f"--code-cache-size={code_file(tmp_path).stat().st_size}"  # full
    first = cached([PYTHON, "-S", "-c", SCRIPT], tmp_path, size)
    assert counts(first).kept == 0 and not list(tmp_path.glob("*.code"))
    assert counts(cached([PYTHON, "-S", "-c", SCRIPT], tmp_path, size)).kept > 0


def test_files_of_other_builds_go_first(tmp_path: Path) -> None:
    cached([works()], tmp_path, "--vex-guest-max-insns=10")
    old = code_file(tmp_path)
    os.utime(str(old), (1000000000, 1000000000))
    cached([works()], tmp_path, "--code-cache-size=1200KiB")
    assert not old.exists() and code_file(tmp_path).exists()


def test_sizes_and_places_that_mean_nothing_stop_the_run() -> None:
    for option in ("--code-cache=", "--code-cache-size=much"):
        refused = record([works()], [option])
        assert refused.returncode != 0 and option.split("=")[0] in refused.stderr
