# SPDX-License-Identifier: GPL-2.0-or-later
"""Other tests are only as good as the harness' reading of what it runs."""

from pathlib import Path
from typing import List

from tests.harness import (
    Argument,
    PYTHON,
    MassifPeak,
    allocated_by_function,
    check_run,
    compile_c,
    massif,
    massif_peak,
    record,
    recorded,
)

SNAPSHOT = """#-----------
snapshot={number}
#-----------
time={number}
mem_heap_B={heap}
mem_heap_extra_B={extra}
mem_stacks_B=0
heap_tree={tree}
"""


def test_the_snapshot_marked_as_peak_counts_even_if_another_is_larger() -> None:
    text = SNAPSHOT.format(number=0, heap=10, extra=6, tree="peak")
    text += SNAPSHOT.format(number=1, heap=11, extra=6, tree="empty")
    assert massif_peak(text) == MassifPeak(10, 6, 0)


def test_without_a_marked_peak_the_largest_snapshot_counts() -> None:
    text = SNAPSHOT.format(number=0, heap=10, extra=6, tree="empty")
    text += SNAPSHOT.format(number=1, heap=30, extra=2, tree="detailed")
    text += SNAPSHOT.format(number=2, heap=20, extra=2, tree="empty")
    assert massif_peak(text) == MassifPeak(30, 2, 0)


PROGRAM = "#include <stdlib.h>\nint main(void) { free(malloc(4000)); return 3; }"


def test_massif_is_run_and_its_peak_read() -> None:
    assert massif([compile_c(PROGRAM)]).heap == 4000


def test_a_program_is_compiled_anew_when_what_it_includes_has_changed(tmp_path: Path) -> None:
    (tmp_path / "outer.h").write_text('#include "inner.h"\n')
    for number in ("17", "18"):
        (tmp_path / "inner.h").write_text(f"#define NUMBER {number}\n")
        program = compile_c(
            '#include <stdio.h>\n#include "outer.h"\nint main(void) { return printf("%d", NUMBER) < 0; }',
            f"-I{tmp_path}",
        )
        assert check_run([program]) == number


def test_jmassif_is_run_and_its_trace_read() -> None:
    program = compile_c(PROGRAM)
    recording = record([program])
    assert recording.returncode == 3
    assert allocated_by_function(recording.profile, program) == {"main": (4000, 1)}


def test_a_recording_is_made_once_until_what_is_run_changes(tmp_path: Path) -> None:
    module, script = tmp_path / "module.py", tmp_path / "script.py"
    module.write_text("")
    script.write_text("import module, os; print(os.urandom(8))")
    command: List[Argument] = [PYTHON, "-S", script]
    first = recorded(command)
    assert first.trace.exists() and recorded(command).stdout == first.stdout
    assert recorded(command, ["--heap=no"]).stdout != first.stdout
    assert recorded(command, env={"ANOTHER": "1"}).stdout != first.stdout
    module.write_text("pass")
    assert recorded(command).stdout != first.stdout
