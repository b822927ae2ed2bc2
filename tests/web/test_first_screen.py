# SPDX-License-Identifier: GPL-2.0-or-later
"""The first screen: verdict, findings, the largest lines, the ladder, the timeline; the rest folded. All of the report's moment."""

import re
from html import unescape
from pathlib import Path
from typing import List

import pytest

from jmassif.analysis.ladder import LESS, SHOWN
from jmassif.analysis.summary import ALARM, Report, build_report, moment_of
from jmassif.attribution.names import Names
from jmassif.model.run import Profile
from jmassif.render.ladder import rows_of, shown_numbers
from jmassif.render.summary import findings, other_moment, remarks, verdict
from tests.reporter.test_exhaustion import MIB, fragmented, on_board
from tests.reporter.traces import Trace, small_training_run
from tests.web.browser import SCREENSHOTS, look, visit, write_page
from tests.web.pages import Page, Shown

ORDER = [".verdict", ".finding", ".largest", "#timeline"]

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
    said = [verdict(report), *(each.text for each in remarks(report)), other_moment(report)]
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
        [
            "evaluate",
            f"{ORDER!r}.map((each) => document.querySelector(each.startsWith('#') ? each : '#headline ' + each)"
            ".getBoundingClientRect().top)",
        ],
        ["text", "#headline .statement.warning"],
        ["evaluate", "document.documentElement.scrollWidth - document.documentElement.clientWidth"],
        ["screenshot", str(SCREENSHOTS / f"first-screen-{name}.png")],
        width=width,
        height=height,
        scheme=scheme,
        tabs=False,
    )
    assert tops == sorted(tops) and tops[0] >= 0
    # The findings; and, where there is room, that the timeline begins.
    assert tops[1] < height / 2 and (width < 1000 or tops[-1] < 2 * height / 3)
    assert "of 850 MiB at " in alarm and "failed" in alarm and over <= 0


def test_all_but_the_timeline_is_folded_and_not_made_before_it_is_opened(failed: Shown) -> None:
    folded = "[...document.querySelectorAll('section details > .body')].map((e) => e.childElementCount)"
    open_ = "[...document.querySelectorAll('section:not([hidden]) details[open]')].map((e) => e.parentElement.id)"
    before, first, _, after, rows, holds = look(
        failed.page,
        ["evaluate", folded],
        ["evaluate", open_],
        ["click", "#owners > details > summary"],
        ["evaluate", open_],
        ["rows", "#owners tbody"],
        ["texts", "section:not([hidden]) > details > summary > .quiet"],
        tabs=False,
    )
    assert set(before) == {0} and len(before) > 10 and first == []
    assert after == ["owners"] and rows
    assert all(len(text) > 10 for text in holds)


def test_what_happened_leads_to_its_arithmetic(failed: Shown) -> None:
    _, hash_, seen = look(
        failed.page,
        ["click", "#headline .verdict a"],
        ["evaluate", "location.hash"],
        ["text", ".incident .arithmetic"],
        tabs=False,
    )
    assert hash_ == "#out-of-memory" and seen


def test_the_ladder_is_the_reports_and_adds_up(training: Page) -> None:
    report = report_of(training.profile)
    (ladder,) = report.ladders
    labels, bytes_, numbers, shares = look(
        training.path,
        ["texts", "#headline .ladder tbody th"],
        ["attributes", "#headline .ladder tbody tr", "data-bytes"],
        ["texts", "#headline .ladder tbody td"],
        ["evaluate", "[...document.querySelectorAll('#headline .stack-bar span')].map((e) => +e.style.flexGrow)"],
        tabs=False,
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
        ["text", "#headline .largest caption"],
        tabs=False,
    )
    assert "OUT OF MEMORY" in alarm and alarm.endswith("Details")
    assert chosen.startswith(f"snapshot {report.moment.snapshot}, ") and "at the failure" in caption


def test_groups_have_one_colour_on_the_whole_page(failed: Shown) -> None:
    """The style sheet's, which is there before the script, and the script's own."""
    probe = """(() => {
        const context = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
        const seen = (colour) => {
            context.fillStyle = colour;
            context.fillRect(0, 0, 1, 1);
            return [...context.getImageData(0, 0, 1, 1).data];
        };
        return [...document.querySelectorAll('#moment .groups .key')].map(({ dataset }) => {
            const probe = document.createElement('i');
            probe.className = `of-${dataset.group}`;
            document.body.append(probe);
            const script = document.querySelector(`#moment .key[data-group=${dataset.group}] i`);
            return [script, probe].map((e) => seen(getComputedStyle(e).backgroundColor));
        });
    })()"""
    (found,) = look(failed.page, ["evaluate", probe])
    assert len(found) >= 3
    for script, style in found:
        assert max(abs(a - b) for a, b in zip(script, style)) <= 2


def test_a_run_that_went_well_has_no_banner(tmp_path: Path) -> None:
    trace = small_training_run()
    (n_alarms,) = look(write_page(tmp_path, trace.save(tmp_path)), ["count", "#headline .alarm"], tabs=False)
    assert n_alarms == (report_of(trace.load()).outcome.severity == ALARM)


def test_each_process_has_a_headline_of_its_own(forking: Page) -> None:
    together, _, single = look(
        forking.path,
        ["text", "#headline .first:not([hidden])"],
        ["choose", ".bar select", {"index": 1}],
        ["text", "#headline .first:not([hidden])"],
        tabs=False,
    )
    assert "3 processes" in together and "3 processes" not in single
    assert any(verdict(report_of(profile)) in single for profile in forking.profiles)


def test_hostile_names_are_text_on_the_first_screen(tmp_path: Path) -> None:
    name = "</p></script><img src=x onerror=window.hit=1>" + 5000 * "x"
    trace = Trace(command=name, memory="unified")
    trace.snapshot(5, "exit", {trace.account("heap", "app", [f"{name} (a.c:1)"]): (1 << 20, 1)})
    text, hit = look(
        write_page(tmp_path, trace.save(tmp_path)),
        ["text", "#headline .largest"],
        ["evaluate", "String(window.hit)"],
        tabs=False,
    )
    assert "<img src=x onerror=window.hit=1>" in text and hit == "undefined" and len(text) < 2000


def test_the_headline_is_read_within_a_second_on_a_slow_machine(real: Page) -> None:
    """Four times slower than this one. What else runs here must not count: the best of ten, and mostly the first."""
    best = 1e9
    for _ in range(10):
        visited = visit(real.path, ["evaluate", "window.painted"], before=PAINTED, tabs=False, throttle=4)
        assert visited.trouble == [] and visited.results[0]
        best = min(best, max(visited.results[0]))
        if best <= 1000:
            break
    print(f"\nheadline on the screen after {best:.0f} ms")
    assert best <= 1000
