# SPDX-License-Identifier: GPL-2.0-or-later
"""However the program ends, its status is its own and everything up to then is in the trace."""

import os
import signal
import subprocess
from pathlib import Path
from typing import Dict, List, Tuple, Union

import pytest

from jmassif.reader.builder import load_file
from tests.harness import Recording, compile_c, record
from tests.tool.programs import assert_readable, finish, live_at, run_both, start

HEADERS = """
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
static void *idle(void *unused) { return unused; }
static void *forever(void *unused) { for (;;) pause(); return unused; }
"""
BEGIN = "char *p = malloc(123456); memset(p, 1, 123456);\n"


def ending(statements: str) -> Recording:
    text = f"{HEADERS}\nint main(void)\n{{\n{BEGIN}{statements}\nreturn 0;\n}}\n"
    recording = run_both([compile_c(text, "-fno-builtin", "-pthread", "-w")])
    assert len(recording.traces) == 1
    assert_readable(recording.trace)
    assert live_at(recording.profile, -1) >= 123456
    return recording


# Each program's last statement, and how it ends: the status that subprocess has, or the signal's name.
THREAD = "pthread_t t; pthread_create(&t, NULL, "
ENDS: List[Tuple[str, Union[int, str]]] = [
    *[(f"exit({status});", status) for status in (0, 1, 77, 255)],
    ("_exit(42);", 42),
    ("quick_exit(42);", 42),
    (THREAD + "(void *(*)(void *))exit, (void *)42); pause();", 42),
    (THREAD + "forever, NULL); exit(42);", 42),
    (THREAD + "idle, NULL); pthread_join(t, NULL); exit(42);", 42),
    ("signal(SIGUSR1, _exit); raise(SIGUSR1); pause();", signal.SIGUSR1),
    # The main thread ends first, which does not end the program.
    (THREAD + "idle, NULL); pthread_exit(NULL);", 0),
    ("*(volatile int *)8 = 1;", "SIGSEGV"),
    ("abort();", "SIGABRT"),
    ("raise(SIGFPE);", "SIGFPE"),
    ("kill(getpid(), SIGTERM); pause();", "SIGTERM"),
    (THREAD + "idle, NULL); pthread_join(t, NULL); raise(SIGUSR2);", "SIGUSR2"),
    (THREAD + "forever, NULL); raise(SIGILL);", "SIGILL"),
]


@pytest.mark.parametrize("statements, expected", ENDS)
def test_the_end_is_told_as_the_program_meets_it(statements: str, expected: Union[int, str]) -> None:
    recording = ending(statements)
    number = getattr(signal, expected) if isinstance(expected, str) else expected
    assert recording.returncode == (-number if isinstance(expected, str) else number)
    end = recording.profile.end
    assert end is not None and recording.profile.snapshots[-1].reason == end.reason
    assert (end.reason, end.code) == ("signal" if isinstance(expected, str) else "exit", number)


def test_the_signal_that_kills_a_forked_child_is_told() -> None:
    text = f"""{HEADERS}
    #include <sys/wait.h>
    int main(void)
    {{
        int ready[2];
        if (pipe(ready)) return 9;
        pid_t child = fork();
        if (!child) {{ {BEGIN} write(ready[1], "!", 1); for (;;) pause(); }}
        char byte;
        read(ready[0], &byte, 1);
        kill(child, SIGTERM);
        int status = 0;
        waitpid(child, &status, 0);
        return WIFSIGNALED(status) ? WTERMSIG(status) : 99;
    }}
    """
    recording = record([compile_c(text, "-fno-builtin", "-w")])
    assert recording.returncode == signal.SIGTERM
    ends = [load_file(str(trace)).end for trace in recording.traces]
    assert sorted((end.reason, end.code) for end in ends if end) == [("exit", 15), ("signal", 15)]


def test_exit_handlers_still_count() -> None:
    text = """
    #include <stdlib.h>
    static void late(void) { malloc(777); }
    int main(void) { atexit(late); return 3; }
    """
    recording = record([compile_c(text, "-fno-builtin", "-w")])
    assert recording.returncode == 3
    assert live_at(recording.profile, -1) == 777


def test_where_to_read_the_trace_is_said_once_at_the_end() -> None:
    recording = record(["/bin/true"])
    assert recording.stderr.count(f"jmassif report {recording.trace.name}") == 1
    quiet = record(["/bin/true"], ["-q"])
    assert quiet.stderr == ""


@pytest.mark.parametrize("linking", ["-static", "-pie"])
def test_a_program_whose_heap_cannot_be_seen_is_told_so(linking: str) -> None:
    text = "#include <stdlib.h>\nint main(void) { free(malloc(100)); return 7; }\n"
    recording = record([compile_c(text, "-fno-builtin", linking)])
    assert recording.returncode == 7
    assert recording.stderr.count("linked statically") == (linking == "-static")


THIRTY_TWO_BITS = """
.globl _start
_start:
    movl $1, %eax
    movl $7, %ebx
    int $0x80
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="a program for the i386")
def test_a_32_bit_program_is_refused_in_a_line(tmp_path: Path) -> None:
    """Valgrind's own, as it stands for every tool that is not there for a platform: nothing runs, and no trace is left."""
    source, program = tmp_path / "program.s", tmp_path / "program"
    source.write_text(THIRTY_TWO_BITS)
    subprocess.run(
        [os.environ.get("CC", "gcc"), "-m32", "-nostdlib", "-static", "-o", str(program), str(source)], check=True
    )
    if subprocess.run([str(program)]).returncode != 7:
        pytest.skip("the kernel runs no 32-bit programs")
    done = finish(start(tmp_path / "trace", program, stderr=subprocess.PIPE))
    (line,) = done.stderr.splitlines()
    assert done.returncode == 1 and "jmassif" in line and "x86-linux" in line
    assert not (tmp_path / "trace").exists()


# What the C library has buffered for a pipe is lost with _exit, and so is not written twice by a child.
BUFFERED: Dict[str, str] = {
    "exit": "exit(3);",
    "return": "return 3;",
    "exit of another thread": "pthread_t t; pthread_create(&t, NULL, (void *(*)(void *))exit, (void *)3); pause();",
    "_exit": "_exit(3);",
    "quick_exit": "quick_exit(3);",
    "abort": "abort();",
    "a child's _exit": "if (!fork()) _exit(4); wait(NULL); exit(3);",
    "a child's exit": "if (!fork()) exit(4); wait(NULL); _exit(3);",
    "a child that is killed": "if (!fork()) raise(SIGTERM); wait(NULL); exit(3);",
}


@pytest.mark.parametrize("how", sorted(BUFFERED))
def test_what_is_written_at_the_end_is_what_is_written_without_valgrind(how: str) -> None:
    text = f'{HEADERS}\n#include <sys/wait.h>\nint main(void)\n{{\nprintf("buffered\\n");\n{BUFFERED[how]}\n}}\n'
    binary = compile_c(text, "-pthread", "-w")
    natively = subprocess.run([binary], stdout=subprocess.PIPE)
    recording = record([binary])
    assert (recording.stdout, recording.returncode) == (natively.stdout.decode(), natively.returncode)
