# SPDX-License-Identifier: GPL-2.0-or-later
"""The first screen: figure, verdict, findings, the bar from the reader's figure, the timeline, the largest lines; tabs below."""

import re
from html import unescape
from pathlib import Path
from typing import List

import pytest

from jmassif.analysis.ladder import LESS, SHOWN
from jmassif.analysis.moments import select
from jmassif.analysis.summary import ALARM, Report, build_report, moment_of
from jmassif.attribution.names import Names
from jmassif.model.run import Profile
from jmassif.render.ladder import rows_of, shown_numbers
from jmassif.render.summary import ending, findings, other_moment, remarks, verdict
from jmassif.units import size
from tests.reporter.test_exhaustion import MIB, fragmented, on_board
from tests.reporter.test_keepers import GROWS, traced
from tests.reporter.traces import Trace, small_training_run
from tests.web.browser import SCREENSHOTS, look, visit, write_page
from tests.web.pages import Page, Shown

# Bytes of the largest lines.
TOTALS = "[...document.querySelectorAll('#largest tbody tr')].map((row) => row.children[row.children.length - 2].dataset.value)"
ORDER = ["#headline .size", "#headline .verdict", "#headline .stack-bar", "#timeline", "#largest"]

# When the last of the headline's paragraphs was on the screen, in milliseconds since the page was asked for.
PAINTED = """
    window.painted = [];
    new PerformanceObserver((list) => window.painted.push(...list.getEntries().map((entry) => entry.renderTime)))
        .observe({ type: 'element', buffered: true });
"""


def report_of(profile: Profile) -> Report:
    names = Names(profile)
    return build_report(profile, moment_of(profile, names, None), names)


def statements(report: Report) -> List[str]:
    ended = f"{ending(report.outcome)}.".capitalize()  # which stands beside the title
    notes = [each.text for each in remarks(report) if each.text != ended]
    said = [verdict(report), *notes, other_moment(report)]
    return [text for text in said + [each.text for each in findings(report)] if text]


def test_the_first_screen_is_markup_that_needs_no_script(failed: Shown) -> None:
    body = failed.page.read_text().split("<script", 1)[0].split("<body>")[1]
    said = [unescape(text).strip() for text in re.findall(r'<p class="statement[^>]*>([^<]*)', body)]
    assert said == statements(report_of(failed.profile)) and len(said) > 2


@pytest.mark.parametrize(
    "name, width, height, scheme",
    [("wide", 1440, 900, "light"), ("phone", 390, 844, "light"), ("dark", 1440, 900, "dark")],
)
def test_a_run_that_failed_opens_with_why(failed: Shown, name: str, width: int, height: int, scheme: str) -> None:
    tops, alarm, over, _ = look(
        failed.page,
        ["evaluate", f"{ORDER!r}.map((each) => document.querySelector(each)?.getBoundingClientRect().top ?? -1)"],
        ["text", "#headline .statement.warning"],
        ["evaluate", "document.documentElement.scrollWidth - document.documentElement.clientWidth"],
        ["screenshot", str(SCREENSHOTS / f"first-screen-{name}.png")],
        width=width,
        height=height,
        scheme=scheme,
        tabs="none",
    )
    tops = [top for top in tops if top >= 0]
    assert width < 600 or tops == sorted(tops)
    assert width < 600 or tops[-2] < 2 * height / 3
    assert "of 850 MiB at " in alarm and "failed" in alarm and over <= 0


def test_a_tab_is_made_when_it_is_opened_first_and_stays(failed: Shown) -> None:
    made = "[...document.querySelectorAll('[role=tabpanel]')].map((e) => e.childElementCount > 0)"
    before, titles, _, after, _, back, rows = look(
        failed.page,
        ["evaluate", made],
        ["texts", "[role=tab]"],
        ["click", "[role=tab]:text-is('Owners')"],
        ["evaluate", made],
        ["click", "[role=tab]:text-is('Lines')"],
        ["evaluate", made],
        ["count", "#owners tbody tr"],
        tabs="none",
    )
    assert sum(before) == 1 and sum(after) == sum(back) == 2 and rows
    assert len(titles) <= 8 and {"Lines", "Flame graph", "Owners", "Out of memory", "Run"} <= set(titles)


def test_what_happened_leads_to_its_arithmetic(tmp_path: Path) -> None:
    run = fragmented()
    run.fails(300 * MIB, **on_board(0))
    page = write_page(tmp_path, run.trace.save(tmp_path))
    opened, _, _, hash_, seen = look(
        page,
        ["text", "[role=tab][aria-selected=true]"],
        ["keys", "1"],
        ["click", "#headline .verdict a"],
        ["fragment"],
        ["text", ".incident .table"],
        tabs="none",
    )
    assert opened == "Out of memory" and "tab=failures" in hash_ and seen


def test_the_ladder_is_the_reports_and_adds_up(training: Page) -> None:
    report = report_of(training.profile)
    (ladder,) = report.ladders
    _, labels, bytes_, numbers, shares = look(
        training.path,
        ["click", "#headline .ladder summary"],
        ["texts", "#headline .ladder tbody th"],
        ["attributes", "#headline .ladder tbody tr", "data-bytes"],
        ["texts", "#headline .ladder tbody td"],
        ["evaluate", "[...document.querySelectorAll('#headline .piece')].map((e) => +e.style.flexGrow)"],
        tabs="none",
    )
    assert list(map(int, bytes_)) == [rung.bytes for rung in ladder.rungs]
    assert labels == [row.label.strip() for row in rows_of(report.run.is_pytorch, ladder).rows]
    shown = [int(text.replace(",", "")) for text in numbers]
    assert shown == shown_numbers(ladder)
    level = 0
    for rung, number in zip(ladder.rungs, shown):
        if rung.role in (LESS, "plus"):
            level += -number if rung.role == LESS else number
        else:
            assert level in (0, number), rung.key
            level = number
    assert ladder.rungs[-1].role == SHOWN and sum(shares) == pytest.approx(1, abs=1e-3)


def test_a_run_that_died_of_a_failure_is_shown_at_that_moment(tmp_path: Path) -> None:
    run = fragmented()
    run.fails(300 * MIB, **on_board(0))
    run.trace.snapshot(3, "time", {run.cache: (900 * MIB, 3)})
    report = report_of(run.trace.load())
    assert report.failure is not None and report.moment.name == "the failure"
    alarm, chosen, caption = look(
        write_page(tmp_path, run.trace.save(tmp_path)),
        ["text", "#headline .alarm"],
        ["text", "#chosen"],
        ["text", "#largest .above"],
        tabs="none",
    )
    assert "OUT OF MEMORY" in alarm and alarm.endswith("Details")
    assert chosen.startswith("failure, ") and "at the failure" in caption


def test_every_figure_follows_the_moment_and_sentences_say_theirs(training: Page) -> None:
    """At the end all is the report's of that moment; at a snapshot without a name it is the sum of rows."""
    profile, names = training.profile, Names(training.profile)
    seen = [
        ["attributes", "#headline .size [data-bytes]", "data-bytes"],
        ["texts", "#headline .of-moment"],
        ["text", "#largest .above"],
        ["evaluate", TOTALS],
        ["attributes", "#headline .stack-bar .piece", "data-bytes"],
    ]
    results = look(
        training.path,
        ["click", ".moment button:text-is('End')"],
        *seen,
        tabs="none",
    )
    end = build_report(profile, select(profile, "end"), names)
    (whole,), said, lines, rows, _ = results[1:]
    assert int(whole) == end.wholes[0].bytes and said == [] and "end" in lines
    assert list(map(int, rows)) == [row.usage.bytes for row in end.lines[: len(rows)]]
    # Late, so that lines hold memory; neither the end nor the peak, which have a name.
    named = {end.moment.time, end.peak.time}
    number = [each.id for each in profile.snapshots if each.time < end.moment.time and each.time not in named][-1]
    other = build_report(profile, select(profile, str(number)), names)
    chosen, (whole,), said, lines, rows, parts = look(
        training.path, ["text", "#chosen"], *seen, tabs="none", fragment=f"at={number}"
    )
    assert chosen.startswith(f"snapshot {number}, ")
    assert int(whole) == other.wholes[0].bytes == sum(map(int, parts))
    assert said and said[0].startswith("Of the peak") and f"snapshot {number}" in lines
    assert list(map(int, rows)) == [row.usage.bytes for row in other.lines if row.path][: len(rows)]


def test_groups_have_one_colour_on_the_whole_page(failed: Shown) -> None:
    """The style sheet's and the script's own."""
    probe = """(() => {
        const context = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
        const seen = (colour) => {
            context.fillStyle = colour;
            context.fillRect(0, 0, 1, 1);
            return [...context.getImageData(0, 0, 1, 1).data];
        };
        return [...document.querySelectorAll('#timeline .values [data-name]')].map((row) => {
            const probe = document.createElement('i');
            probe.className = `of-${row.dataset.name === 'yours' ? 'tensors' : row.dataset.name}`;
            document.body.append(probe);
            return [row.querySelector('i'), probe].map((e) => seen(getComputedStyle(e).backgroundColor));
        });
    })()"""
    (_, found) = look(failed.page, ["choose", "#timeline select", "group"], ["evaluate", probe])
    assert len(found) >= 3
    for script, style in found:
        assert max(abs(a - b) for a, b in zip(script, style)) <= 2


def test_a_run_that_went_well_has_no_banner(tmp_path: Path) -> None:
    trace = small_training_run()
    (n_alarms,) = look(write_page(tmp_path, trace.save(tmp_path)), ["count", "#headline .alarm"], tabs="none")
    assert n_alarms == (report_of(trace.load()).outcome.severity == ALARM)


def test_names_in_backticks_are_code(tmp_path: Path) -> None:
    page = write_page(tmp_path, traced(list(GROWS), list(GROWS)).save(tmp_path))
    text, code = look(page, ["text", "main"], ["texts", "#headline code"])
    assert "`" not in text and {"Tensor", "history", "train.py:18 (f)"} <= set(code)


def test_the_moment_of_a_failure_is_named_after_it(failed: Shown) -> None:
    number = next(each.id for each in failed.profile.snapshots if each.reason == "out-of-memory")
    plot, _, address = look(
        failed.page,
        ["attributes", "#timeline .plot", "aria-valuetext"],
        ["click", ".moment button:text-is('›')"],
        ["evaluate", "location.hash"],
        fragment=f"at={number}",
    )
    assert plot[0].startswith("allocation failed at ")
    # Addresses have its number, as those of other snapshots.
    found = re.fullmatch(r"#at=(\d+)(&.*)?", address)
    assert found and int(found.group(1)) != number


def test_each_process_has_a_headline_of_its_own(forking: Page) -> None:
    together, _, single = look(
        forking.path,
        ["text", "#headline"],
        ["choose", ".bar select", {"index": 1}],
        ["text", "#headline"],
        tabs="none",
    )
    assert "3 processes" in together and "3 processes" not in single
    assert "by ledger" in together and "by ledger" not in single
    assert any(size(report_of(profile).peak.bytes) in single for profile in forking.profiles)


def test_hostile_names_are_text_on_the_first_screen(tmp_path: Path) -> None:
    name = "</p></script><img src=x onerror=window.hit=1>" + 5000 * "x"
    trace = Trace(command=name, memory="unified")
    trace.snapshot(5, "exit", {trace.account("heap", "app", [f"{name} (a.c:1)"]): (1 << 20, 1)})
    text, hit = look(
        write_page(tmp_path, trace.save(tmp_path)),
        ["text", "#largest"],
        ["evaluate", "String(window.hit)"],
        tabs="none",
    )
    assert "<img src=x onerror=window.hit=1>" in text and hit == "undefined" and len(text) < 2000


def test_the_headline_is_read_within_a_second_on_a_slow_machine(real: Page) -> None:
    """Four times slower than this one. What else runs here must not count: the best of ten, and mostly the first."""
    best = 1e9
    for _ in range(10):
        visited = visit(real.path, ["evaluate", "window.painted"], before=PAINTED, tabs="none", throttle=4)
        assert visited.trouble == []
        best = min(best, max(visited.results[0], default=best))  # the browser may not have said when it painted
        if best <= 1000:
            break
    print(f"\nheadline on the screen after {best:.0f} ms")
    assert best <= 1000
