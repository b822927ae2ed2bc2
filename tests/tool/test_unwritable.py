# SPDX-License-Identifier: GPL-2.0-or-later
"""A trace that cannot be written is an error before the program starts; later it costs the program nothing but one message."""

import os
import resource
import subprocess
from pathlib import Path
from typing import Callable, Iterator, Optional, Sequence

import pytest

from jmassif.reader.builder import load_file
from tests.harness import Run, compile_c, record
from tests.tool.programs import assert_readable, finish, start

ALLOCATES = """
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void *spread(int n) { return n ? spread(n - 1) : malloc(100000); }
int main(int argc, char **argv)
{
    // Many large blocks and stacks: a trace of some hundreds of KiB.
    for (int i = 0; i < 6000; i++) {
        void *p = spread(i % 300);
        free(p);
    }
    if (argc > 1 && fork() == 0)
        _exit(0);
    while (wait(NULL) > 0)
        ;
    puts("all the same");
    return 33;
}
"""
MESSAGE = "jmassif: cannot "
KEEP_GOING = "--keep-going=yes"


def run_limited(
    out_file: str, limit: Optional[Callable[[], None]] = None, *arguments: str, options: Sequence[str] = ()
) -> Run:
    """Like record(), with a choice of the file, and `limit` called in the process before it starts."""
    compiled = compile_c(ALLOCATES, "-fno-builtin")
    words = ["--large=1", *options, compiled, *arguments]
    return finish(start(out_file, *map(str, words), stderr=subprocess.PIPE, preexec_fn=limit))


def assert_one_message(done: Run) -> None:
    assert (done.stdout, done.returncode) == ("all the same\n", 33), done.stderr
    assert done.stderr.count(MESSAGE) == 1, done.stderr


def test_without_limits_the_trace_is_long_enough_for_these_tests() -> None:
    recording = record([compile_c(ALLOCATES, "-fno-builtin")], ["--large=1"])
    assert recording.returncode == 33
    assert recording.trace.stat().st_size > 150000


@pytest.mark.parametrize(
    "out_file, reason",
    [
        ("{}/no/such/trace", "no such directory"),
        ("{}/no-%p/trace", "no such directory"),
        ("{}/.", "it is a directory"),
        ("{}/file/trace", "not a directory"),
        ("/proc/trace.%p", "no such directory"),
        ("/dev/full", "no space left on device"),
        ("{}/" + 300 * "t", "errno 36"),
    ],
)
def test_nothing_is_run_where_the_trace_cannot_be_written(tmp_path: Path, out_file: str, reason: str) -> None:
    (tmp_path / "file").touch()
    refused = run_limited(out_file.format(tmp_path))
    assert (refused.stdout, refused.returncode) == ("", 2), refused.stderr
    assert refused.stderr.count(MESSAGE) == 1 and f": {reason}; nothing was run" in refused.stderr, refused.stderr
    assert out_file.format(tmp_path).partition("%p")[0] in refused.stderr
    # Asked to, it runs all the same. Forked children have no more to say.
    done = run_limited(out_file.format(tmp_path), None, "forks", options=[KEEP_GOING])
    assert_one_message(done)
    assert reason in done.stderr and "report" not in done.stderr  # no trace to read


def test_a_later_program_of_the_run_goes_on_without_a_trace(tmp_path: Path) -> None:
    script = "cd /proc && exec /bin/echo all the same"
    done = finish(start("trace", "--trace-children=yes", "/bin/sh", "-c", script, stderr=subprocess.PIPE, cwd=tmp_path))
    assert (done.stdout, done.returncode) == ("all the same\n", 0), done.stderr
    assert done.stderr.count(MESSAGE) == 1 and "no such directory" in done.stderr


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    mount = tmp_path / "disk"
    mount.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "jmassif-test", str(mount)], stderr=subprocess.PIPE
    )
    if done.returncode != 0:
        pytest.skip("mounting a file system is not allowed here")
    yield mount
    subprocess.run(["umount", str(mount)], check=True)


def test_a_disk_that_fills_up(small_disk: Path) -> None:
    done = run_limited(f"{small_disk}/trace")
    assert_one_message(done)
    assert_readable(small_disk / "trace")
    assert load_file(str(small_disk / "trace")).snapshots


def test_a_limit_on_the_size_of_files(tmp_path: Path) -> None:
    """Writing beyond the limit also sends a signal, which would kill the program."""
    limit = 64 * 1024
    done = run_limited(f"{tmp_path}/trace", lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    assert_one_message(done)
    assert (tmp_path / "trace").stat().st_size <= limit
    assert_readable(tmp_path / "trace")


def test_a_program_that_closes_every_descriptor_leaves_the_trace_alone() -> None:
    text = """
    #include <stdlib.h>
    #include <unistd.h>
    int main(void)
    {
        for (int fd = 3; fd < 1 << 16; fd++)
            close(fd);
        return !malloc(1234);
    }
    """
    recording = record([compile_c(text, "-fno-builtin")])
    assert recording.returncode == 0
    assert recording.profile.is_complete


def test_a_pipe_whose_reader_goes(tmp_path: Path) -> None:
    """To write to it sends a signal as well, which would kill the program."""
    fifo = tmp_path / "trace"
    os.mkfifo(fifo)
    with subprocess.Popen(["head", "-c", "100", str(fifo)], stdout=subprocess.PIPE) as reader:
        done = run_limited(str(fifo))
        assert reader.communicate()[0].startswith(b"jmassif-trace")
    assert_one_message(done)


def test_a_pipe_gets_the_parents_trace_alone(tmp_path: Path) -> None:
    fifo, kept = tmp_path / "pipes" / "trace", tmp_path / "kept"
    fifo.parent.mkdir()
    os.mkfifo(fifo)
    with kept.open("wb") as file, subprocess.Popen(["cat", str(fifo)], stdout=file) as reader:
        done = run_limited(str(fifo), None, "forks")
        reader.wait(timeout=30)
    assert (done.stdout, done.returncode) == ("all the same\n", 33), done.stderr
    assert done.stderr.count("not a regular file, so the trace of child") == 1
    assert list(fifo.parent.iterdir()) == [fifo]
    assert_readable(kept)
    assert load_file(str(kept)).is_complete


def test_the_null_device_takes_every_trace() -> None:
    before = set(os.listdir("/dev"))
    done = run_limited("/dev/null", None, "forks")
    assert (done.stdout, done.returncode) == ("all the same\n", 33), done.stderr
    assert "jmassif: cannot" not in done.stderr and "not a regular file" not in done.stderr
    assert not [name for name in set(os.listdir("/dev")) - before if name.startswith("null")]
