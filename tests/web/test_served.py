# SPDX-License-Identifier: GPL-2.0-or-later
"""jmassif serve: the page on a server of its own, which goes on with the run, has every place in it, and answers nobody else."""

import io
import re
from pathlib import Path
from typing import Any

from jmassif.model.records import PEAKS
from jmassif.reader.builder import load, load_file
from tests.live.test_following import SMALL, pieces
from tests.reporter.traces import Trace
from tests.serve.served import fixture_serve, fixture_small, walk
from tests.web.browser import SCREENSHOTS, look, visit
from tests.web.pages import Page

# A busy machine takes its time.
_PATIENCE_MS = 60000


def test_a_served_page_may_ask_its_server_and_a_file_nobody(small: Any, training: Page) -> None:
    def policy(page: bytes) -> str:
        found = re.search(rb'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
        assert found
        return found.group(1).decode().replace("&#x27;", "'")

    of_file, of_server = policy(training.path.read_bytes()), policy(small[0].get(small[0].path)[1])
    assert of_server == of_file + "; connect-src 'self'" and "connect-src" not in of_file
    assert "default-src 'none'" in of_file


# ---- in the browser ------------------------------------------------------------------------------

_ROWS = "#places tbody tr"


def test_a_place_that_the_file_prunes_is_found(serve: Any, tmp_path: Path) -> None:
    """The smallest of a great many branches, which the page itself does not know."""
    trace = Trace(memory="unified", pid="7", time_unit="ms", command="many")
    accounts = {}
    for number in range(18000):
        frames = [f"inner{number} (a.c:{number + 1})", "middle (a.c:3)", "main (a.c:2)"]
        accounts[trace.account("heap", "app", frames)] = (18000 - number, 1)
    trace.snapshot(5, "time", accounts)
    trace.snapshot(6, "exit")
    trace.lines.append("Z 6 exit 0")
    served = serve(trace.save(tmp_path))
    assert b"inner17999" not in served.get(served.path)[1]
    results = look(
        served.address,
        ["until", f"document.querySelectorAll('{_ROWS}').length > 100", _PATIENCE_MS],
        ["text", f"{_ROWS}:nth-child(3) td"],
        ["count", _ROWS],
        ["click", f"{_ROWS}:last-child button"],
        ["until", f"document.querySelectorAll('{_ROWS}').length > 400", _PATIENCE_MS],
        [
            "evaluate",
            "[...document.querySelectorAll('#places tbody tr')].slice(3, 403).reduce((sum, row) => sum + Number(row.children[1].dataset.value ?? 0), 0)",
        ],
    )
    assert "middle (a.c:3)" in results[1] and results[2] == 3 + 200 + 1
    assert results[5] == sum(18000 - number for number in range(400))
    last = served.ask("children", process=7, at=1, node=2, first=17999)
    assert [row["host"] for row in last["rows"]] == [1] and last["rows"][0]["name"] == "inner17999 (a.c:18000)"


def test_places_follow_the_moment_open_and_close_and_show_their_blocks(small: Any) -> None:
    served, profile = small
    results = look(
        served.address,
        ["until", f"document.querySelectorAll('{_ROWS}').length > 3", _PATIENCE_MS],
        ["attributes", f"{_ROWS}:first-child td.figure", "data-value"],
        ["click", ".moment button:text-is('Host peak')"],
        ["until", f"document.querySelector('#places [role=status]').innerText.includes('host peak')", _PATIENCE_MS],
        ["attributes", f"{_ROWS}:first-child td.figure", "data-value"],
        ["count", _ROWS],
        ["click", f"{_ROWS} button[aria-expanded=false]"],
        ["until", f"document.querySelector('{_ROWS} button[aria-expanded=true]') !== null", _PATIENCE_MS],
        ["count", _ROWS],
        ["click", f"{_ROWS} button[aria-expanded=true]"],
        ["count", _ROWS],
        ["click", f"{_ROWS}:first-child td:last-child button"],
        ["until", "document.querySelectorAll('#places .table tbody tr').length > 2", _PATIENCE_MS],
        ["axe"],
        ["screenshot", str(SCREENSHOTS / "served.png"), True],
    )
    at_peak, at_host_peak = walk(profile, "peak-total")[()], walk(profile, "peak-host")[()]
    assert list(map(int, results[1])) == at_peak and list(map(int, results[4])) == at_host_peak
    assert results[8] > results[5] and results[10] <= results[5] and results[13] == []


def test_a_page_that_is_a_file_has_no_such_section(training: Page) -> None:
    visited = visit(training.path, ["count", "#places"], ["count", ".live"])
    assert visited.results == [0, 0] and visited.trouble == []


def test_the_page_goes_on_with_the_run(serve: Any, tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "jmassif.out.1"
    parts = pieces(SMALL)
    path.write_bytes(b"".join(parts[:40]))
    served = serve(path)
    whole = load(io.BytesIO(SMALL))
    before = load_file(str(path))
    n_before = len(before.snapshots)
    # Snapshots and peaks, as the page has them.
    n_shown, n_at_end = (len(each.snapshots) + len(set(each.peaks) & set(PEAKS)) for each in (before, whole))
    n_moments = "Number(document.querySelector('#chosen').title.split(' ')[0])"
    now = "document.querySelector('#now').innerText"
    results = look(
        served.address,
        ["until", f"{now}.includes('{n_before} snapshots')", _PATIENCE_MS],
        ["evaluate", n_moments],
        ["append", str(path), parts[40].decode()],
        ["until", f"{now}.includes('{n_before + 1} snapshots')", _PATIENCE_MS],
        ["until", f"{n_moments} > {n_shown}", _PATIENCE_MS],
        # Whoever looks around in peace is told of what is new, and shown it when they want.
        ["click", ".live input"],
        ["append", str(path), b"".join(parts[41:]).decode()],
        ["until", f"{now}.includes('exit status 0')", _PATIENCE_MS],
        ["evaluate", n_moments],
        ["click", ".live input"],
        ["until", f"{n_moments} === {n_at_end}", _PATIENCE_MS],
        ["text", "#headline"],
        ["axe"],
    )
    with capsys.disabled():
        print(f"\nfigures {results[3]} ms after a snapshot, all of the page {results[4]} ms later")
    assert results[1] == n_shown and results[8] < n_at_end
    assert results[12] == []
