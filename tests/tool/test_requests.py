# SPDX-License-Identifier: GPL-2.0-or-later
"""Talking to the recorder: monitor commands through vgdb, jmassif.h from C, libjmassif.so from Python."""

import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple

import pytest

from jmassif.reader.builder import load_file
from tests.harness import BUILD, PYTHON, ROOT, VALGRIND, compile_c, record, run
from tests.tool.programs import assert_readable, run_both, start

WAITS = """
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    char *most = malloc(64 << 20), *kept = malloc(3 << 20);
    memset(kept, 1, 3 << 20);
    free(most);
    write(1, "ready\\n", 6);
    char c;
    while (read(0, &c, 1) > 0)
        malloc(1 << 20);
    return 5;
}
"""


class Running(NamedTuple):
    process: "subprocess.Popen[bytes]"
    trace: Path
    prefix: str

    def ask(self, command: str) -> str:
        """The answer of `vgdb COMMAND`."""
        vgdb = ["vgdb", f"--pid={self.process.pid}", f"--vgdb-prefix={self.prefix}", *command.split()]
        done = run(vgdb, timeout=30)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def running() -> Iterator[Running]:
    if shutil.which("vgdb") is None:
        pytest.skip("vgdb is not installed")
    with tempfile.TemporaryDirectory(prefix="jmassif-test-") as directory:
        trace, prefix = Path(directory) / "trace", f"{directory}/vgdb-pipe"
        options = ["-q", "--pages=no", "--vgdb=yes", f"--vgdb-prefix={prefix}"]
        process = start(trace, *options, compile_c(WAITS, "-fno-builtin", "-w"), stdin=subprocess.PIPE)
        assert process.stdout is not None and process.stdin is not None
        try:
            assert process.stdout.readline() == b"ready\n"
            yield Running(process, trace, prefix)
            process.stdin.close()
            assert process.wait(timeout=30) == 5
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


def test_snapshot_brings_the_trace_up_to_date(running: Running) -> None:
    assert running.process.stdin is not None
    before = len(load_file(str(running.trace)).snapshots)
    running.process.stdin.write(b"x" * 7)
    running.process.stdin.flush()
    deadline = time.monotonic() + 60
    held = 0
    while held != 10 << 20:
        assert time.monotonic() < deadline
        assert str(running.trace) in running.ask("snapshot")
        assert_readable(running.trace)
        profile = load_file(str(running.trace))
        assert len(profile.snapshots) > before
        assert profile.snapshots[-1].reason == "request"
        held = profile.snapshots[-1].by_kind["heap"]


def test_help_lists_the_commands(running: Running) -> None:
    answer = running.ask("help")
    assert re.search(r"^  snapshot ", answer, re.MULTILINE)


def test_commands_may_be_shortened_and_unknown_ones_are_refused(running: Running) -> None:
    assert "written to" in running.ask("snap")
    assert "not recognised" in running.ask("nonsense")


# ---- jmassif.h --------------------------------------------------------------------------------

SPEAKS = """
#include "jmassif.h"
#include <stdio.h>
#include <stdlib.h>
static void epoch(int n)
{
    JMASSIF_REGION_BEGIN("epoch");
    JMASSIF_REGION_BEGIN("load");
    char *p = malloc(1000 * (size_t)n);
    JMASSIF_REGION_END("load");
    JMASSIF_SNAPSHOT();
    free(p);
    JMASSIF_REGION_END("epoch");
}
int main(void)
{
    JMASSIF_MARK("start \\\\ of\\tall");
    epoch(1);
    epoch(2);
    char *p = malloc(50000);
    JMASSIF_MARK("");
    free(p);
    JMASSIF_MARK((char *)8);
    JMASSIF_REGION_BEGIN("open at the end");
    puts("done");
    return 6;
}
"""


def test_the_client_header_speaks_to_the_recorder_and_to_nobody_else() -> None:
    compiled = compile_c(SPEAKS, "-fno-builtin", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}/jmassif")
    recording = run_both([compiled])  # so it does nothing without the tool
    other = run([VALGRIND, "-q", "--tool=none", compiled])
    assert (other.stdout, other.returncode, other.stderr) == ("done\n", 6, "")

    profile = recording.profile
    assert [mark.text for mark in profile.marks] == ["start \\ of\tall", "", "(unreadable)"]
    regions = [(region.text, region.depth, region.end is None) for region in profile.regions]
    assert regions == [
        ("epoch", 0, False),
        ("load", 1, False),
        ("epoch", 0, False),
        ("load", 1, False),
        ("open at the end", 0, True),
    ]
    heaps: Dict[str, List[int]] = {"request": [], "mark": []}
    for snapshot in profile.snapshots:
        if snapshot.reason in heaps:
            heaps[snapshot.reason].append(snapshot.by_kind.get("heap", 0))
    assert heaps == {"request": [1000, 2000], "mark": [0, 50000, 0]}


def test_the_client_header_is_for_cxx_too() -> None:
    text = '#include "jmassif.h"\nint main() { JMASSIF_MARK("here"); JMASSIF_SNAPSHOT(); return 0; }\n'
    compiled = compile_c(text, "-Wall", "-Wextra", "-Werror", f"-I{ROOT}/jmassif", suffix=".cc")
    assert [mark.text for mark in run_both([compiled]).profile.marks] == ["here"]


SCRIPT = """
import ctypes, sys
jm = ctypes.CDLL(sys.argv[1])
jm.jmassif_mark(b"epoch 1")
jm.jmassif_region_begin("größer".encode())
jm.jmassif_snapshot()
jm.jmassif_region_end("größer".encode())
print("done")
"""


def test_python_reaches_the_same_requests() -> None:
    command = [PYTHON, "-S", "-c", SCRIPT, str(BUILD / "jmassif" / "libjmassif.so")]
    native = run(command)
    recording = record(command)
    assert (recording.stdout, recording.returncode) == (native.stdout, native.returncode) == ("done\n", 0)
    profile = recording.profile
    assert [mark.text for mark in profile.marks] == ["epoch 1"]
    assert [region.text for region in profile.regions] == ["größer"]
    assert profile.regions[0].end is not None
    assert [snapshot.reason for snapshot in profile.snapshots].count("request") == 1


WILD = """
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <valgrind/valgrind.h>
#include "jmassif.h"
#include "preload/protocol.h"
#define REQUEST(...) VALGRIND_DO_CLIENT_REQUEST_EXPR(0, __VA_ARGS__)

int main(void)
{
    static const unsigned long wild[] = {0, 1, 7, 4095, 0x7fffffffffffffff, ~0ul, ~0ul - 7, 0x800000000000, 1ul << 40};
    enum { N = sizeof wild / sizeof wild[0] };
    static char block[4096];
    /* Nothing can be written there. */
    char *constant = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) {
            for (unsigned long request = JM_REQ_ENTER; request <= JM_REQ_EXIT + 2; request++) {
                if (request == JM_REQ_CALLOC || request == JM_REQ_PVALLOC || request == JM_REQ_NEW)
                    continue;
                REQUEST(request, wild[i], wild[j], wild[i], wild[j], wild[(i + j) % N]);
                REQUEST(request, wild[j] % 200, constant, constant, constant, constant);
                REQUEST(request, constant, constant, 4096, wild[i], constant);
            }
            VALGRIND_MALLOCLIKE_BLOCK(wild[i], wild[j], 0, 0);
            VALGRIND_RESIZEINPLACE_BLOCK(wild[i], wild[j], wild[(i + j) % N], 0);
            VALGRIND_MALLOCLIKE_BLOCK(block + 64 * i, wild[j], 0, 0);
            VALGRIND_RESIZEINPLACE_BLOCK(block + 64 * i, wild[j], wild[(i + j) % N], 0);
            VALGRIND_FREELIKE_BLOCK(wild[i], 0);
        }
        JMASSIF_MARK((const char *)wild[i]);
        JMASSIF_REGION_BEGIN((const char *)wild[i]);
        JMASSIF_REGION_END((const char *)wild[i]);
    }
    for (int i = 0; i < 100000; i++)
        VALGRIND_MALLOCLIKE_BLOCK(block + i % 4096, 1ul << 47, 0, 0);
    for (int i = 0; i < 4096; i++)
        VALGRIND_FREELIKE_BLOCK(block + i, 0);
    puts("done");
    return 3;
}
"""


def test_requests_with_wild_arguments_are_refused_and_counted() -> None:
    program = compile_c(WILD, "-w", "-fno-builtin", "-I", str(ROOT / "jmassif"))
    recording = record([program])
    assert (recording.returncode, recording.stdout) == (3, "done\n"), recording.stderr
    assert_readable(recording.trace)
    counters = recording.profile.counters
    assert counters["cuda-report-refused"] > 0
    assert counters["absurd-block-announced"] > 0
