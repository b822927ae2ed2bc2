# SPDX-License-Identifier: GPL-2.0-or-later
"""The first screen: what happened, the fullest pool, whose it is, where to look, what would help, the timeline; the rest folded."""

import re
from html import unescape
from pathlib import Path
from typing import List

import pytest

from jmassif.analysis.aggregate import ledger
from jmassif.analysis.headline import HAPPENED, headline
from jmassif.analysis.moments import select
from jmassif.attribution.names import Names
from jmassif.model.run import Profile
from jmassif.units import size
from tests.reporter.traces import Trace, small_training_run
from tests.web.browser import SCREENSHOTS, look, visit, write_page
from tests.web.pages import Page, Shown

ORDER = [".happened", ".fullest", ".stack-bar", ".pool", ".whose", ".place", "#timeline"]

# When the last of the headline's paragraphs was on the screen, in milliseconds since the page was asked for.
PAINTED = """
    window.painted = [];
    new PerformanceObserver((list) => window.painted.push(...list.getEntries().map((entry) => entry.renderTime)))
        .observe({ type: 'element', buffered: true });
"""


def statements(profile: Profile) -> List[str]:
    return [each.text for each in headline(profile, Names(profile)).statements]


def test_the_headline_is_markup_that_needs_no_script(failed: Shown) -> None:
    before_scripts = failed.page.read_text().split("<script", 1)[0]
    body = before_scripts.split("<body>")[1]
    told = [unescape(text) for text in re.findall(r'<p class="statement[^>]*>([^<]*)', body)]
    told += [unescape(text) for text in re.findall(r"<li>([^<]*)", body)]
    assert sorted(text.strip() for text in told) == sorted(statements(failed.profile))


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
        ["text", "#headline .statement"],
        ["evaluate", "document.documentElement.scrollWidth - document.documentElement.clientWidth"],
        ["screenshot", str(SCREENSHOTS / f"first-screen-{name}.png")],
        width=width,
        height=height,
        scheme=scheme,
        unfold=False,
    )
    assert tops == sorted(tops) and tops[0] >= 0
    # The banner and the pool; and, where there is room, that the timeline begins.
    assert tops[2] < height / 2 and (width < 1000 or tops[-1] < 2 * height / 3)
    assert alarm.startswith("Out of memory") and "850 MiB" in alarm and over <= 0


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
        unfold=False,
    )
    assert set(before) == {0} and len(before) > 10 and first == []
    assert after == ["owners"] and rows
    assert all(len(text) > 10 for text in holds)


def test_what_happened_leads_to_its_arithmetic(failed: Shown) -> None:
    _, hash_, seen = look(
        failed.page,
        ["click", "#headline .happened a"],
        ["evaluate", "location.hash"],
        ["text", ".incident .arithmetic"],
        unfold=False,
    )
    assert hash_ == "#out-of-memory" and seen


def test_the_bar_is_of_the_fullest_pool(failed: Shown) -> None:
    profile = failed.profile
    pool = headline(profile, Names(profile)).pool
    assert pool is not None and pool.used is not None
    names, texts, shares, said = look(
        failed.page,
        ["attributes", "#headline .legend li", "data-name"],
        ["texts", "#headline .legend b"],
        ["evaluate", "[...document.querySelectorAll('#headline .stack-bar span')].map((e) => +e.style.flexGrow)"],
        ["text", "#headline .fullest"],
        unfold=False,
    )
    told = dict(zip(names, texts))
    groups = {
        group.name: sum(group.usage.on(side) for side in pool.sides)
        for group in ledger(profile, select(profile, "peak").composition).groups
    }
    own = sum(groups.values())
    assert said.startswith(
        f"{size(own)} of {size(pool.capacity)} of {'memory' if pool.key == 'machine' else 'device memory'}"
    )
    for name, n_bytes in groups.items():
        assert told.get(name, "0 B") == size(n_bytes)
    free = pool.capacity - max(pool.used, own)
    assert told.get("free", "0 B") == size(free)
    assert sum(shares) == pytest.approx(1, abs=1e-3)


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
    page = write_page(tmp_path, trace.save(tmp_path))
    expected = [each for each in headline(trace.load(), Names(trace.load())).statements if each.about == HAPPENED]
    (n_happened,) = look(page, ["count", "#headline .alarm"], unfold=False)
    assert n_happened == sum(each.severity == "alarm" for each in expected)


def test_each_process_has_a_headline_of_its_own(forking: Page) -> None:
    together, _, single = look(
        forking.path,
        ["text", "#headline .first:not([hidden])"],
        ["choose", ".bar select", {"index": 1}],
        ["text", "#headline .first:not([hidden])"],
        unfold=False,
    )
    assert "these 3 processes" in together and "these 3 processes" not in single
    own = [statements(profile)[-1] for profile in forking.profiles]
    assert any(text in single for text in own)


def test_hostile_names_are_text_on_the_first_screen(tmp_path: Path) -> None:
    name = "</p></script><img src=x onerror=window.hit=1>" + 5000 * "x"
    trace = Trace(command=name, memory="unified")
    trace.snapshot(5, "exit", {trace.account("heap", "app", [f"{name} (a.c:1)"]): (1 << 20, 1)})
    text, hit = look(
        write_page(tmp_path, trace.save(tmp_path)),
        ["text", "#headline .place"],
        ["evaluate", "String(window.hit)"],
        unfold=False,
    )
    assert "<img src=x onerror=window.hit=1>" in text and hit == "undefined" and len(text) < 2000


def test_the_headline_is_read_within_a_second_on_a_slow_machine(real: Page) -> None:
    """Four times slower than this one. What else runs here must not count: the best of ten, and mostly the first."""
    best = 1e9
    for _ in range(10):
        visited = visit(real.path, ["evaluate", "window.painted"], before=PAINTED, unfold=False, throttle=4)
        assert visited.trouble == [] and visited.results[0]
        best = min(best, max(visited.results[0]))
        if best <= 1000:
            break
    print(f"\nheadline on the screen after {best:.0f} ms")
    assert best <= 1000
