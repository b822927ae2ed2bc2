# SPDX-License-Identifier: GPL-2.0-or-later
"""Each option does what its help says, and says what is wrong with a value that it cannot take."""

import re
from pathlib import Path
from typing import Dict, List, Set, Tuple

import pytest

from jmassif.model.run import Profile
from tests.harness import BUILD, ROOT, VALGRIND, compile_c, massif, record, run
from tests.tool.programs import assert_readable, at_peak, heap_stacks, is_massifs_extra

NESTED = """
#include <stdlib.h>
#include <string.h>
static void *pool_take(size_t n) { return malloc(n); }
static void *wrapped(size_t n) { return pool_take(n); }
static void *inner(size_t n) { return malloc(n); }
static void *outer(size_t n) { return inner(n); }
int main(void)
{
    memset(wrapped(1000), 1, 1000);
    memset(outer(2000), 1, 2000);
    memset(realloc(inner(300), 4000), 1, 4000);
    free(malloc(50000));
    return 0;
}
"""


def nested(*options: str) -> Profile:
    return record([compile_c(NESTED, "-fno-builtin")], options).profile


def innermost(profile: Profile) -> Dict[str, int]:
    """By innermost function: the heap bytes that it ever allocated."""
    sums: Dict[str, int] = {}
    for stack, n_bytes in heap_stacks(profile).items():
        sums[stack[0]] = sums.get(stack[0], 0) + n_bytes
    return sums


def test_stacks_are_complete_and_begin_at_their_callers() -> None:
    assert heap_stacks(nested()) == {
        ("pool_take", "wrapped", "main"): 1000,
        ("inner", "outer", "main"): 2000,
        ("inner", "main"): 300,
        ("main",): 4000 + 50000,
    }


def test_depth_keeps_the_innermost_frames() -> None:
    assert heap_stacks(nested("--depth=1")) == {("pool_take",): 1000, ("inner",): 2300, ("main",): 54000}
    assert heap_stacks(nested("--depth=2")) == {
        ("pool_take", "wrapped"): 1000,
        ("inner", "outer"): 2000,
        ("inner", "main"): 300,
        ("main",): 54000,
    }


def test_alloc_fn_passes_over_a_function_that_allocates_for_others() -> None:
    assert innermost(nested("--alloc-fn=pool_take")) == {"wrapped": 1000, "inner": 2300, "main": 54000}
    both = nested("--alloc-fn=pool_take", "--alloc-fn=wrapped")
    assert innermost(both) == {"inner": 2300, "main": 1000 + 54000}
    # Only the innermost frames are an allocator's: one that is called by another function is that one's caller.
    assert innermost(nested("--alloc-fn=wrapped")) == innermost(nested())


def test_ignore_fn_leaves_out_what_the_function_allocates() -> None:
    profile = nested("--ignore-fn=inner")
    assert innermost(profile) == {"pool_take": 1000, "main": 54000}
    # Also when the function allocates through one that --alloc-fn names.
    assert "wrapped" not in innermost(nested("--alloc-fn=pool_take", "--ignore-fn=wrapped"))
    # A caller further out is not meant.
    assert innermost(nested("--ignore-fn=outer")) == innermost(nested())


def test_heap_off_leaves_the_heap_out() -> None:
    profile = nested("--heap=no")
    assert not profile.counts() and not profile.peaks


@pytest.mark.parametrize(
    "options", [["--alloc-fn=pool_take", "--ignore-fn=inner"], ["--heap-admin=0"], ["--heap-admin=24"]]
)
def test_options_that_massif_has_too_do_what_they_do_there(options: List[str]) -> None:
    expected = massif([compile_c(NESTED, "-fno-builtin")], ["--peak-inaccuracy=0.0", *options])
    profile = nested(*options)
    assert at_peak(profile, "heap") == expected.heap
    assert "--alloc-fn" in options[0] or is_massifs_extra(profile, expected.extra)


def test_the_options_of_a_run_are_recorded_for_the_reports() -> None:
    profile = nested("--max-snapshots=20", "--depth=7", "--large=2MiB")
    expected = {
        "option.max-snapshots": "20",
        "option.depth": "7",
        "option.heap-admin": "8",
        "option.heap": "yes",
        "option.large": str(2 << 20),
    }
    assert {key: profile.manifest.get(key) for key in expected} == expected


@pytest.mark.parametrize("memory", ["unified", "discrete"])
def test_memory_says_whether_host_and_device_are_one(memory: str) -> None:
    assert nested(f"--memory={memory}").manifest["memory"] == memory


# ---- what cannot be ---------------------------------------------------------------------------

# Options as they must not be, and a word of the line that says so.
BAD: List[Tuple[str, str]] = [
    ("--heap=maybe", "maybe"),
    ("--heap-admin=2000", "between 0 and 1024"),
    ("--depth=-1", "between 0 and"),
    ("--depth=deep", "deep"),
    ("--max-snapshots=9", "between 10 and 1000"),
    ("--interval=0", "between 1 and"),
    ("--low-memory=101", "between 0 and 100"),
    ("--low-memory=-1", "between 0 and 100"),
    ("--low-memory=some", "some"),
    ("--time-unit=s", "i, ms or B"),
    ("--memory=both", "auto, unified or discrete"),
    ("--large=5x", "65536, 64KiB or 1MiB"),
    ("--large=", "65536, 64KiB or 1MiB"),
    ("--large=17179869184GiB", "65536, 64KiB or 1MiB"),
    ("--large=18446744073709551617", "65536, 64KiB or 1MiB"),
    ("--anonymize=perhaps", "perhaps"),
    ("--jmassif-out-file=%z", "after '%'"),
    ("--no-such-option=1", "--no-such-option=1"),
]


@pytest.mark.parametrize("option,word", BAD, ids=[option for option, _ in BAD])
def test_a_bad_option_ends_the_run_before_it_begins(option: str, word: str) -> None:
    recording = record(["/bin/echo", "it ran"], [option])
    assert recording.returncode == 1  # Valgrind's own status for a bad command line
    assert "it ran" not in recording.stdout
    assert option in recording.stderr and word in recording.stderr
    assert not recording.traces


def test_help_shows_every_option() -> None:
    shown = run([VALGRIND, "--tool=jmassif", "--help-debug"], env={"VALGRIND_LIB": str(BUILD / ".in_place")})
    assert shown.returncode == 0
    own = shown.stdout[shown.stdout.index("user options for jmassif") :]
    documented: Set[str] = set(re.findall(r"^    (--[a-z-]+)=", own, re.MULTILINE))
    source = (ROOT / "jmassif" / "base" / "options.c").read_text()
    parsed = set(re.findall(r'\.name = "(--[a-z-]+)"', source))
    assert len(parsed) > 15
    assert parsed <= documented
    assert max(len(line) for line in own.splitlines()) <= 100


def test_large_takes_sizes_with_units() -> None:
    compiled = compile_c("#include <stdlib.h>\nint main(void) { free(malloc(3 << 20)); free(malloc(2000)); return 0; }")
    for option, n_records in [("2000", 2), ("2001", 1), ("3M", 1), ("3MiB", 1), ("4MiB", 0), ("1GiB", 0), ("1k", 2)]:
        profile = record([compiled], [f"--large={option}"]).profile
        assert sum(1 for size in profile.blocks[2::4] if size) == n_records, option


def test_out_file_names_may_hold_the_pid_the_environment_and_a_percent_sign(tmp_path: Path) -> None:
    recording = record(["/bin/true"], [f"--jmassif-out-file={tmp_path}/%q{{RUN}}-%%-%p"], env={"RUN": "first"})
    assert recording.returncode == 0
    (trace,) = tmp_path.iterdir()
    pid = recording.load(trace).manifest["pid"]
    assert trace.name == f"first-%-{pid}"


def test_a_relative_out_file_stays_where_the_program_was_started(tmp_path: Path) -> None:
    moves = compile_c(
        '#include <stdlib.h>\n#include <unistd.h>\nint main(void) { free(malloc(9)); return chdir("/"); }'
    )
    assert record([moves], ["--jmassif-out-file=here"], cwd=tmp_path).returncode == 0
    assert [path.name for path in tmp_path.iterdir()] == ["here"]


def test_the_default_out_file_is_in_the_current_directory(tmp_path: Path) -> None:
    done = run([VALGRIND, "--tool=jmassif", "/bin/true"], env={"VALGRIND_LIB": str(BUILD / ".in_place")}, cwd=tmp_path)
    assert done.returncode == 0
    (trace,) = tmp_path.iterdir()
    assert re.fullmatch(r"jmassif\.out\.\d+", trace.name)
    assert_readable(trace)
