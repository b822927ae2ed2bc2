# SPDX-License-Identifier: GPL-2.0-or-later
"""jmassif.record(): a part of a script in a trace, and nothing of what came before or comes after."""

import os
import tempfile
from pathlib import Path
from typing import Dict, List, Optional, Tuple

import pytest

from jmassif.model.run import Profile
from jmassif.model.run_info import ending_of
from jmassif.reader.builder import load_file
from tests.harness import PYTHON, ROOT, Argument, Run, compile_c, recorder, run, user_function
from tests.packaging.test_launcher import installed

HEAD = """
import os, sys, threading
import jmassif
mark = sys.argv[1:]
"""
OF_BYTEARRAY = 1  # it ends in a zero
OFF = "--start=off"


class Parts:
    def __init__(self, script: str, *options: str, env: Optional[Dict[str, str]] = None) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="jmassif-test-")
        self.place = Path(self._directory.name)
        self.script = self.place / "script.py"
        self.script.write_text(HEAD + script)
        command, environment = recorder(self.place / "other.jm", ["-q", *options], env, host="native")
        environment["PYTHONPATH"] = str(ROOT / "reporter")
        self.done = run([*command, PYTHON, self.script], env=environment, cwd=self.place, timeout=60)

    def profile(self, name: str = "out.jm") -> Profile:
        return load_file(str(self.place / name))

    def traces(self) -> List[str]:
        return sorted(path.name for path in self.place.iterdir() if path != self.script)

    def allocated(self, profile: Profile) -> Dict[str, Tuple[int, int]]:
        """By the text of a line: the bytes and blocks of the heap that it allocated in all."""
        lines = self.script.read_text().splitlines()
        sums: Dict[str, Tuple[int, int]] = {}
        for account_id, counts in profile.counts().items():
            account = profile.accounts[account_id]
            frames = map(profile.frame, profile.stack(account.node))
            line = next((f.line for f in frames if f.type == "p" and f.file.endswith("script.py")), 0)
            if account.kind == "heap" and line:
                text = lines[line - 1].strip()
                n_bytes, n_blocks = sums.get(text, (0, 0))
                sums[text] = (n_bytes + counts.bytes, n_blocks + counts.blocks)
        return sums


def held(profile: Profile) -> int:
    """The heap's bytes at the end."""
    composition = profile.composition(len(profile.snapshots) - 1)
    return sum(n for account, (n, _) in composition.items() if profile.accounts[account].kind == "heap")


def test_a_part_is_recorded_to_the_byte_and_nothing_before_or_after_it() -> None:
    parts = Parts(
        """
before = bytearray(30_000_000)
small = [bytearray(1000) for _ in range(1000)]
print(jmassif.is_recording(), jmassif.usage())
with jmassif.record("out.jm"):
    inside = bytearray(1_234_567)
    for _ in range(100): kept = bytearray(2_001)
    before.extend(b"x" * 10)
    del small
    print(jmassif.is_recording(), jmassif.usage().host > 1_234_567)
print(jmassif.is_recording(), jmassif.usage())
after = bytearray(40_000_000)
del inside
""",
        OFF,
    )
    assert parts.done == Run(0, "False None\nTrue True\nFalse None\n", "")
    assert parts.traces() == ["out.jm"]
    profile = parts.profile()
    allocated = parts.allocated(profile)
    assert allocated["inside = bytearray(1_234_567)"] == (1_234_567 + OF_BYTEARRAY, 1)
    assert allocated["for _ in range(100): kept = bytearray(2_001)"] == (100 * (2_001 + OF_BYTEARRAY), 100)
    # A block from before that moves counts from then on.
    assert allocated.pop('before.extend(b"x" * 10)')[0] > 30_000_000
    assert sum(n_bytes for n_bytes, _ in allocated.values()) < 1_600_000
    assert not any(line.startswith(("before", "after", "small")) for line in allocated)
    assert held(profile) > 31_234_567
    # Nor is memory that malloc had mapped before, as a block beside a library's data.
    by_kind = profile.snapshots[-1].by_kind
    assert by_kind.get("anon", 0) < 2_000_000 and by_kind["file"] < 25_000_000
    assert profile.counters.get("free-of-unknown-pointer", 0) == 0
    assert profile.end is not None and (profile.end.reason, profile.end.code) == ("end", 0)
    assert ending_of(profile) == "the program stopped the recording"


def test_all_threads_are_recorded_also_those_from_before() -> None:
    parts = Parts(
        """
from queue import Queue
inbox, outbox = Queue(), Queue()
kept = []
def worker():
    while inbox.get():
        kept.append(bytearray(300_001))
        outbox.put(1)
old = threading.Thread(target=worker)
old.start()
inbox.put(1)
outbox.get()
with jmassif.record("out.jm"):
    def begun(): kept.append(bytearray(500_001))
    new = [threading.Thread(target=begun) for _ in range(4)]
    for _ in range(3): inbox.put(1)
    for t in new: t.start()
    for t in new: t.join()
    for _ in range(3): outbox.get()
inbox.put(1)
outbox.get()
inbox.put(0)
old.join()
threading.Thread(target=begun).start()
print(len(kept))
""",
        OFF,
    )
    assert parts.done == Run(0, "10\n", "")
    allocated = parts.allocated(parts.profile())
    assert allocated["kept.append(bytearray(300_001))"] == (3 * 300_002, 3)
    assert allocated["def begun(): kept.append(bytearray(500_001))"] == (4 * 500_002, 4)


def test_another_thread_may_record_while_the_first_allocates() -> None:
    parts = Parts(
        """
done = []
def part():
    with jmassif.record("out.jm"):
        for _ in range(200): kept = bytearray(100_000)
    done.append(1)
t = threading.Thread(target=part)
t.start()
while not done: bytearray(3_000)
t.join()
""",
        OFF,
    )
    assert parts.done == Run(0, "", "")
    assert parts.allocated(parts.profile())["for _ in range(200): kept = bytearray(100_000)"] == (200 * 100_001, 200)


def test_a_function_of_cuda_that_was_found_before_is_recorded(sim: Path) -> None:
    parts = Parts(
        f"""
import ctypes
allocate = ctypes.CDLL("{sim}/libcudart.so.10.2").cudaMalloc
def take(n_bytes):
    p = ctypes.c_void_p()
    assert allocate(ctypes.byref(p), ctypes.c_size_t(n_bytes)) == 0
take(4 << 20)
with jmassif.record("out.jm"):
    take(6 << 20)
    take(1 << 20)
take(8 << 20)
""",
        OFF,
        "--driver=no",
        env={"LD_LIBRARY_PATH": str(sim)},
    )
    assert parts.done == Run(0, "", "")
    profile = parts.profile()
    assert profile.snapshots[-1].device == profile.peaks["device"].device == 7 << 20


def test_an_exception_ends_the_part_and_goes_on() -> None:
    parts = Parts(
        """
try:
    with jmassif.record("out.jm"):
        inside = bytearray(1_000_000)
        raise KeyError(1)
except KeyError:
    print("seen", jmassif.is_recording())
after = bytearray(2_000_000)
""",
        OFF,
    )
    assert parts.done == Run(0, "seen False\n", "")
    profile = parts.profile()
    assert profile.is_complete and 1_000_001 <= held(profile) < 1_900_000


@pytest.mark.parametrize(
    "leave, status, reason", [("sys.exit(7)", 7, "end"), ("os._exit(7)", 7, "exit"), ("os.abort()", -6, "signal")]
)
def test_the_program_may_end_inside_a_part(leave: str, status: int, reason: Optional[str]) -> None:
    parts = Parts(
        f"""
with jmassif.record("out.jm"):
    inside = bytearray(1_000_000)
    jmassif.snapshot()
    {leave}
""",
        OFF,
    )
    assert parts.done.returncode == status
    profile = parts.profile()
    assert 1_000_001 <= held(profile) < 1_900_000
    assert (profile.end and profile.end.reason) == reason
    if reason == "exit":
        assert ending_of(profile) == "exit status 7"


def test_a_child_inside_a_part_has_a_trace_of_its_own() -> None:
    parts = Parts(
        """
with jmassif.record("out.jm"):
    shared = bytearray(1_000_000)
    pid = os.fork()
    if not pid: own = bytearray(2_000_000)
after = bytearray(3_000_000)
if pid: print(pid, os.waitpid(pid, 0)[1], flush=True)
""",
        OFF,
    )
    pid, status = parts.done.stdout.split()
    assert (parts.done.returncode, parts.done.stderr, status) == (0, "", "0")
    assert parts.traces() == ["out.jm", f"out.jm.{pid}"]
    assert 1_000_001 <= held(parts.profile()) < 1_900_000
    child = parts.profile(f"out.jm.{pid}")
    assert 3_000_002 <= held(child) < 3_900_000
    assert ending_of(child) == "the program stopped the recording"


def test_a_child_from_before_can_record_too() -> None:
    parts = Parts(
        """
pid = os.fork()
with jmassif.record("out-%p.jm"):
    inside = bytearray(1_000_000 if pid else 2_000_000)
if pid: print(os.getpid(), pid, os.waitpid(pid, 0)[1])
""",
        OFF,
    )
    parent, child, status = parts.done.stdout.split()
    assert (parts.done.returncode, parts.done.stderr, status) == (0, "", "0")
    line = "inside = bytearray(1_000_000 if pid else 2_000_000)"
    for pid, n_bytes in ((parent, 1_000_001), (child, 2_000_001)):
        assert parts.allocated(parts.profile(f"out-{pid}.jm"))[line] == (n_bytes, 1)


def test_a_script_that_records_no_part_has_no_trace() -> None:
    parts = Parts("print(len(bytearray(1_000_000)), 'JMASSIF_NATIVE' in os.environ)", OFF)
    assert parts.done == Run(0, "1000000 False\n", "") and parts.traces() == []


def test_a_path_is_below_the_present_directory_or_that_of_the_command() -> None:
    parts = Parts("os.mkdir('50%')\nos.chdir('50%')\nwith jmassif.record('a%%b.jm'): pass\nprint(os.listdir())", OFF)
    assert parts.done == Run(0, "['a%b.jm']\n", "")
    parts = Parts("os.chdir('/')\nwith jmassif.record(): pass", OFF)
    assert parts.done == Run(0, "", "") and parts.traces() == ["other.jm"]


def test_a_path_that_cannot_be_written_is_an_error_and_another_can_be_tried() -> None:
    parts = Parts(
        """
for path in "absent/out.jm", ".", "%q{HOME}":
    try:
        with jmassif.record(path): print("not reached")
    except OSError as error:
        print(error)
with jmassif.record("out.jm"): pass
""",
        OFF,
    )
    assert parts.done.stderr == "" and parts.done.stdout.splitlines() == [
        "[Errno 2] No such file or directory: 'absent/out.jm'",
        "[Errno 21] Is a directory: '.'",
        "[Errno 22] Invalid argument: '%q{HOME}'",
    ]
    assert parts.traces() == ["out.jm"]


START = "jmassif --native --start=off python3 SCRIPT"


def test_where_nothing_can_be_recorded_one_error_says_why() -> None:
    script = "with jmassif.record('out.jm'): print('not reached')"
    recorded = Parts(script)  # from its start
    alone = run(
        [PYTHON, recorded.script],
        env={"PYTHONPATH": str(ROOT / "reporter"), "VALGRIND": "", "VALGRIND_LIB": ""},
        cwd=recorded.place,
        timeout=60,
    )
    twice = Parts("with jmassif.record('one.jm'): pass\n" + script, OFF)
    for done, text in (
        (recorded.done, f"jmassif records already; to record a part alone, start the script by: {START}"),
        (alone, f"jmassif.record() needs the native recorder; start the script by: {START}"),
        (
            twice.done,
            "jmassif.record() works once in a process, and its recording has ended; use a process for each part",
        ),
    ):
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.splitlines()[-1] == f"RuntimeError: {text}"
    assert recorded.traces() == ["other.jm"] and twice.traces() == ["one.jm"]


def test_the_command_and_the_package_start_a_script_without_recording(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        HEAD + "before = bytearray(5_000_000)\nwith jmassif.record('out.jm'):\n    x = bytearray(1_000_000)"
    )
    command = installed(tmp_path / "there")
    # "make check" names a Valgrind; who asks for the native recorder gets that.
    env = {
        "PATH": f"{command.parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "reporter"),
        "VALGRIND": "valgrind",
    }
    ways: List[List[Argument]] = [
        [command, "--native", OFF, "-q", PYTHON],
        [PYTHON, "-m", "jmassif", "--native", OFF, "-q"],
    ]
    for words in ways:
        done = run([*words, script], env=env, cwd=tmp_path)
        assert done == Run(0, "", "")
        assert 1_000_001 <= held(load_file(str(tmp_path / "out.jm"))) < 1_900_000
        os.remove(str(tmp_path / "out.jm"))


def test_a_program_in_c_records_a_part_while_threads_allocate_and_fork(tmp_path: Path) -> None:
    program = compile_c(
        """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int jmassif_start(const char *path) __attribute__((weak));
void jmassif_stop(void) __attribute__((weak));
static volatile int is_over;
static void *storm(void *x) {
    while (!is_over) { void *p = malloc(100); p = realloc(p, 200000); free(p); }
    return x;
}
static void *children(void *x) {
    while (!is_over) { int pid = fork(), status; if (!pid) _exit(0); waitpid(pid, &status, 0); }
    return x;
}
__attribute__((noinline)) static void *hold(int bytes) { return malloc(bytes); }
int main(void) {
    pthread_t t[4];
    void *volatile kept = hold(1000);
    for (int i = 0; i < 4; i++) pthread_create(&t[i], 0, i < 3 ? storm : children, 0);
    usleep(20000);
    int started = jmassif_start("out.jm"), again = jmassif_start("out.jm");
    for (int i = 0; i < 1000; i++) kept = hold(10);
    usleep(20000);
    jmassif_stop();
    jmassif_stop();
    int after = jmassif_start("out.jm");
    kept = hold(100000);
    is_over = 1;
    for (int i = 0; i < 4; i++) pthread_join(t[i], 0);
    printf("%d, %s, %s\\n", started, strerror(again), strerror(after));
    return kept == 0;
}
""",
        "-w",
        "-pthread",
        "-O1",
    )
    command, environment = recorder("unused", ["-q", "--pages=no", OFF], host="native")
    done = run([*command, program], env=environment, cwd=tmp_path, timeout=60)
    assert done == Run(0, "0, Operation already in progress, Device or resource busy\n", "")
    profile = load_file(str(tmp_path / "out.jm"))
    sums = [
        blocks
        for account, blocks in profile.composition(len(profile.snapshots) - 1).items()
        if user_function(profile, profile.accounts[account].node, program) == "hold"
    ]
    assert sums == [(10_000, 1000)] and profile.is_complete
