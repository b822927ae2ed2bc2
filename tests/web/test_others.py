# SPDX-License-Identifier: GPL-2.0-or-later
"""What other tools showed, on the page: at the chosen moment, and by a log that was handed in."""

from pathlib import Path

from tests.reporter.test_overlay import R36, jm_print, trace
from tests.web.browser import look


def test_a_log_stands_beside_the_ledgers_figures(tmp_path: Path) -> None:
    log, page = tmp_path / "log", tmp_path / "report.html"
    log.write_text(R36.replace("12:34:56", "12:34:58"))
    arguments = [str(trace().save(tmp_path)), f"--overlay={log}"]
    done = jm_print(*arguments, "--format=html", "-o", str(page))
    assert done.status == 0, done.err
    rows, said, machine, beside = look(
        page,
        ["texts", "#others tbody tr"],
        ["text", "#others p:not([hidden])"],
        ["count", "#machine .machine"],
        ["texts", "#timeline .values .beside"],
    )
    assert [row.split("\t")[:2] for row in rows] == [
        ["massif: heap", "100 MiB"],
        ["tegrastats, by its log: RAM", "3.09 GiB"],
    ]
    assert "tegrastats showed 3.09 GiB in use at 2.00 s; the ledger explains 1000 MiB" in said
    assert machine == 1
    # And in the plot of the program's memory, not only in the machine's.
    assert [text.split("\t")[:2] for text in beside] == [["tegrastats showed in use", "3.09 GiB"]]
