# SPDX-License-Identifier: GPL-2.0-or-later
"""A short search for rules and options that do harm, from one seed (or JMASSIF_SEED); `python3 -m tests.fuzz.options` searches longer."""

from pathlib import Path

from tests.fuzz import options, searching
from tests.harness import Run


@searching.extent(15, 400)
def test_rules_and_options_never_change_the_program_or_break_its_trace(n_runs: int) -> None:
    seed = searching.seed()
    tally = options.search(seed, n_runs)
    print(f"seed {seed}: {tally.runs} runs, {tally.refused} refused, slowest {tally.slowest[0]:.1f} s")
    assert not tally.faults, f"seed {seed}: " + "\n".join(tally.faults)
    assert 0 < tally.refused < tally.runs


def test_the_search_sees_what_may_not_be(tmp_path: Path) -> None:
    alone = Run(7, "14\n", "")
    (tmp_path / "trace").write_text("jmassif-trace 4\nz\n")

    def told(run: Run, *traces: Path, seconds: float = 1) -> str:
        return options.fault(alone, options.Outcome(run, seconds, list(traces))) or ""

    assert told(alone) == ""
    assert told(Run(2, "", "valgrind: jmassif: --owners=x: cannot read the file\n")) == ""
    assert told(Run(1, "", "valgrind: Bad option: --heap=maybe\nvalgrind: Use --help\n")) == ""
    assert "exit status 1" in told(Run(1, "", "valgrind: the 'impossible' happened:\n"))
    assert "exit status 2" in told(Run(2, "", ""))
    assert "exit status -11" in told(Run(-11, "", ""))
    assert "terminal" in told(Run(7, "14\n", "\x1b[2J"))
    assert "another result" in told(Run(7, "15\n", ""))
    assert "cannot be read" in told(alone, tmp_path / "trace")
    assert "and a trace" in told(Run(2, "", "valgrind: jmassif: no\n"), tmp_path / "trace")
    assert " s" in told(alone, seconds=99)
