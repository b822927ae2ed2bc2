# SPDX-License-Identifier: GPL-2.0-or-later
"""jmassif serve: the page on a server of its own, which goes on with the run, and answers nobody else."""

import io
import re
from pathlib import Path
from typing import Any

from jmassif.model.records import PEAKS
from jmassif.reader.builder import load, load_file
from tests.live.test_following import SMALL, pieces
from tests.serve.served import fixture_serve, fixture_small
from tests.web.browser import look, visit
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


def test_a_page_that_is_a_file_follows_nothing(training: Page) -> None:
    visited = visit(training.path, ["count", ".live"])
    assert visited.results == [0] and visited.trouble == []


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
