# SPDX-License-Identifier: GPL-2.0-or-later
"""A page or two with hostile names, from one seed (or JMASSIF_SEED); `python3 -m tests.fuzz.pages` opens more."""

from pathlib import Path

import pytest

from tests.fuzz import pages, searching
from tests.harness import BUILD
from tests.reporter.traces import Trace
from tests.web.browser import need_page, visit, write_page


HARMED = """<!doctype html><html data-state="ready"><body>
<p style="width: 3000px; height: 1px"></p><b class="injected"></b>
<script>window.hit = 1; Object.prototype.owner = 1; console.error('oh')</script></body></html>"""


@pytest.fixture(name="built", autouse=True)
def fixture_built() -> None:
    need_page()


@searching.extent(1, 30)
def test_no_name_does_anything_in_a_page(n_runs: int) -> None:
    seed = searching.seed()
    tally = pages.search(seed, n_runs, BUILD / "fuzz" / "pages")
    print(f"seed {seed}: {tally.pages} pages, {tally.refused} refused, slowest {tally.slowest} ms")
    assert not tally.faults, f"seed {seed}: " + "\n".join(tally.faults)


def test_long_names_in_a_legend_make_no_page_wider(tmp_path: Path) -> None:
    trace = Trace(command="a", time_unit="ms", memory="unified")
    account = trace.account("heap", "e" * 64, ["std::vector<" * 60 + ">" * 60 + " (a.c:1)", "main (a.c:2)"])
    trace.snapshot(5, "time", {account: (1 << 20, 1)})
    trace.snapshot(9, "exit")
    path = tmp_path / "jmassif.out.1"
    path.write_bytes(trace.bytes() + b"Z 9 exit 0\n")
    looked = ["evaluate", pages.LOOK]
    visited = visit(write_page(tmp_path, path), looked, ["evaluate", pages.CHOOSE], looked, width=390)
    assert (visited.trouble, visited.results[0], visited.results[2]) == ([], [], [])


def test_the_search_sees_what_a_page_may_not_do(tmp_path: Path) -> None:
    path = tmp_path / "harmed.html"
    path.write_text(HARMED)
    visited = visit(path, ["evaluate", pages.LOOK])
    assert visited.trouble == ["error: oh"]
    ran, markup, prototype, wide, first = visited.results[0]
    assert (ran, markup, prototype) == ("a script ran", "markup of a name", "a prototype has owner")
    assert "wider" in wide and first == "no first sentence"
