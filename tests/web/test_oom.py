# SPDX-License-Identifier: GPL-2.0-or-later
"""Failed allocations on the page: what is shown is what the model concludes, and the map is the segments'."""

import re
from pathlib import Path


from jmassif.analysis.device_memory import layout_at
from jmassif.analysis.oom import incidents_of
from jmassif.attribution.names import Names
from jmassif.render.failures import arithmetic, reason
from jmassif.render.summary import action
from jmassif.units import size
from tests.reporter.test_exhaustion import BOARD, MIB, Run, fragmented, on_board
from tests.web.browser import SCREENSHOTS, look, write_page
from tests.web.pages import Shown

INCIDENT = ".incident[data-number='1']"


def test_the_verdict_its_figures_and_the_remedies_are_the_models(failed: Shown) -> None:
    (incident,) = incidents_of(failed.profile, Names(failed.profile))
    heading, said, labels, figures, remedies, _ = look(
        failed.page,
        ["text", f"{INCIDENT} h3"],
        ["text", f"{INCIDENT} p"],
        ["texts", f"{INCIDENT} .table tbody th"],
        ["texts", f"{INCIDENT} .table tbody .figure"],
        ["texts", f"{INCIDENT} .helps li"],
        ["screenshot", str(SCREENSHOTS / "out-of-memory.png"), True],
    )
    assert heading.endswith(": fragmentation")
    assert said.startswith("cudaMalloc of 850 MiB failed twice (error 2).") and reason(incident, False) in said
    rows = arithmetic(incident.situation)
    assert labels == [label for label, _, _ in rows]
    assert figures == [size(n_bytes) if n_bytes else "–" for _, n_bytes, _ in rows]
    assert remedies == [action(hint, True, incident) for hint in incident.hints]


def test_the_map_has_the_segments_with_their_holes(failed: Shown) -> None:
    (incident,) = incidents_of(failed.profile, Names(failed.profile))
    rows, holes = look(
        failed.page,
        ["texts", f"{INCIDENT} .map-row"],
        ["attributes", f"{INCIDENT} .segment .hole", "title"],
    )
    segments = layout_at(failed.profile, incident.last.position).segments
    assert len(rows) == len(segments) == 4
    drawn = {(label.split(": ")[1].split(" at ")[0], label.split(" at 0x")[1]) for label in holes}
    assert drawn == {
        (size(part.bytes), f"{segment.address + part.offset:x}")
        for segment in segments
        for part in segment.parts
        if not part.account
    }


def test_its_moment_can_be_shown_in_all_sections(failed: Shown) -> None:
    (incident,) = incidents_of(failed.profile, Names(failed.profile))
    assert incident.last.snapshot is not None
    _, chosen = look(failed.page, ["click", f"{INCIDENT} > button"], ["text", "#chosen"])
    assert chosen.startswith("allocation failed, ")


def test_fragmentation_over_time_ends_where_the_run_did(failed: Shown) -> None:
    (rows,) = look(failed.page, ["rows", "#fragmentation tbody"])
    last = [row for row in rows if row[0] == max(row[0] for row in rows)][-1]
    assert last[1:4] == [3600 * MIB, 900 * MIB, 300 * MIB]


def test_what_was_made_good_is_a_line_and_hostile_names_are_text(tmp_path: Path) -> None:
    run = Run().segment(0x1000_0000, 300 * MIB)
    first = run.fails(350 * MIB, **on_board(100 * MIB))
    run.trace.block_end(2, 0x1000_0000, run.cache)
    run.trace.outcome(first, 2, "retried")
    run.trace.exhaustion(3, run.heap, 1, "<img src=x onerror=alert(1)>\x1b")
    items, said = look(
        write_page(tmp_path, run.trace.save(tmp_path)),
        ["texts", ".resolved li"],
        ["text", ".incident p"],
    )
    assert len(items) == 1 and "Retry succeeded after 300 MiB was freed." in items[0]
    assert said.startswith("<img src=x onerror=alert(1)>\\x1b of 1 B failed")


def test_a_run_that_never_failed_has_no_such_section(tmp_path: Path) -> None:
    quiet = fragmented()
    quiet.snapshot(1)
    (sections,) = look(write_page(tmp_path, quiet.trace.save(tmp_path)), ["attributes", "section:not([hidden])", "id"])
    assert "out-of-memory" not in sections and "fragmentation" in sections


def test_many_failures_make_no_large_page(tmp_path: Path) -> None:
    run = fragmented()
    for n in range(200):
        run.fails(BOARD + n, **on_board(0))
    run.trace.lines.append("k out-of-memory 5000")
    page = write_page(tmp_path, run.trace.save(tmp_path))
    n_shown, said = look(page, ["count", ".incident"], ["text", ".not-shown"])
    assert n_shown == 50 and re.match(r"4,950 more failed calls", said)
    assert page.stat().st_size < 2 << 20
