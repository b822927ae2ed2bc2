# SPDX-License-Identifier: GPL-2.0-or-later
"""What a reader does with pointer and keys, on real runs. Every figure asserted is worked out from the trace."""

import json
import re
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Tuple

import pytest

from jmassif.analysis.aggregate import roles
from jmassif.analysis.moments import select
from jmassif.model.records import Scope, counted_blocks, side_of
from jmassif.model.run import Profile
from jmassif.units import moment, size

from tests.reporter.traces import Trace
from tests.web.browser import SCREENSHOTS, Seen, Step, look, look_once, write_page
from tests.web.pages import TREE, WHOLE_RUN, Page, assert_adds_up, find, held, owners, walk

ORDER = "#calls label:has-text('Order') select"
MEASURE = "#calls label:has-text('Show') select"
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


def share_of_time(page: Page, time: float) -> float:
    """Where in the timeline a time is drawn: 0 at its left end, 1 at its right."""
    profile = page.profile
    times = [snapshot.time for snapshot in profile.snapshots] + list(profile.timeline.time)
    times += [peak.time for peak in profile.peaks.values()]
    return (time - min(times)) / (max(times) - min(times))


# ---- what several tests look at in one visit -----------------------------------------------------

SIGNS = ["texts", "#timeline .signs .key"]
SEARCHED = r"train\.py:\d+ \((train|peak_inside)"
MARKED = "[...document.querySelectorAll('.flame .found')].map((g) => g.dataset.name)"
FRAMES = "[...document.querySelectorAll('.flame .frame')].map((g) => [g.dataset.name, g.querySelector('rect').getAttribute('fill')])"


def pointed(page: Page, time: float) -> List[Step]:
    return [WHOLE_RUN, ["hover", "#timeline .u-over", share_of_time(page, time), 0.5], ["text", "#timeline .tip"]]


def areas(dimension: str, table: str) -> List[Step]:
    """The sizes and names below a timeline of such areas, and the rows of a table."""
    return [
        ["choose", "#timeline select", dimension],
        ["texts", "#timeline .values tr[data-name] td:nth-child(2)"],
        ["attributes", "#timeline .values tr[data-name]", "data-name"],
        ["rows", f"#{table} tbody"],
    ]


@pytest.fixture(scope="module", name="seen")
def fixture_seen(real: Page) -> Seen:
    return look_once(
        real.path,
        {
            "sorted": [
                ["press", "#owners thead th:nth-child(1) button", "Enter"],
                ["rows", "#owners tbody"],
                ["focused"],
                ["attributes", "#owners thead th", "aria-sort"],
            ],
            "measures at the end": [
                ["press", "#timeline .plot", "End"],
                ["choose", MEASURE, "blocks"],
                ["evaluate", TREE],
                ["choose", MEASURE, "allocated"],
                ["evaluate", TREE],
            ],
            "zoom": [
                WHOLE_RUN,
                ["hover", "#timeline .u-over", 0.5, 0.5],
                ["text", "#timeline .tip"],
                ["drag", "#timeline .u-over", 0.9, 1.0],
                ["hover", "#timeline .u-over", 0.5, 0.4],
                ["text", "#timeline .tip"],
            ],
        },
    )


@pytest.fixture(scope="module", name="training_seen")
def fixture_training_seen(training: Page) -> Seen:
    longest = longest_scope(training.profile)
    side, owner = (f"#calls label:has-text('{label}') select" for label in ("Memory", "Owner"))
    maps: List[Step] = []
    for button in ("Peak", "Device peak", "End"):
        maps += [["click", f".moment button:text-is('{button}')"], ["texts", "#device .map-label"]]
    return look_once(
        training.path,
        {
            "signs": [SIGNS],
            "pointer": pointed(training, (longest.begin + longest.end) / 2),
            "tree of host": [["choose", side, "host"], ["evaluate", TREE]],
            "tree of device": [["choose", side, "device"], ["evaluate", TREE], ["choose", side, {"index": 0}]],
            "tree of cudnn": [
                ["choose", owner, {"label": "cudnn"}],
                ["evaluate", TREE],
                ["choose", owner, {"index": 0}],
            ],
            "maps": maps[1:],
        },
    )


@pytest.fixture(scope="module", name="pytorch_seen")
def fixture_pytorch_seen(pytorch: Page) -> Seen:
    search, fold = "#calls input[type=search]", ["click", "#calls input[type=checkbox]"]
    return look_once(
        pytorch.path,
        {
            "signs": [SIGNS],
            "pointer": pointed(pytorch, pytorch.profile.marks[0].time),
            "frames": [["evaluate", FRAMES]],
            "tables": [["rows", "#temporaries tbody"], ["rows", "#lines tbody"], ["rows", "#lines tfoot"]],
            "all rows": [
                ["choose", "#owners .choice select", "library"],
                ["count", "#owners tbody tr"],
                ["click", "#owners .more"],
                ["rows", "#owners tbody"],
                ["click", "#owners .more"],
                ["count", "#owners tbody tr"],
                ["choose", "#owners .choice select", "owner"],
            ],
            "searched": [
                ["evaluate", TREE],
                ["fill", search, SEARCHED],
                ["text", "#calls output.quiet"],
                ["evaluate", MARKED],
                ["fill", search, "no such function"],
                ["text", "#calls output.quiet"],
                ["fill", search, "("],
                ["text", "#calls output.quiet"],
                ["fill", search, ""],
                ["evaluate", MARKED],
            ],
            "folded": [["evaluate", TREE], fold, ["evaluate", TREE], fold],
            "by role": [["choose", "#owners .choice select", "role"]],
            "areas by role": areas("role", "owners"),
            "by owner": [["choose", "#owners .choice select", "owner"]],
            "areas by line": areas("Python line", "lines"),
        },
    )


# ---- timeline --------------------------------------------------------------------------------


def longest_scope(profile: Profile) -> Scope:
    """How long a call takes depends on what else the machine does: the longest is wider than a pointer."""
    return max(profile.scopes, key=lambda scope: scope.end - scope.begin)


def test_calls_and_marks_under_the_pointer_are_named(
    training: Page, training_seen: Seen, pytorch: Page, pytorch_seen: Seen
) -> None:
    name = longest_scope(training.profile).name
    assert re.search(rf"during .*\b{name}\b", training_seen["pointer"][2])
    assert f"mark: {pytorch.profile.marks[0].text}" in pytorch_seen["pointer"][2]


def test_regions_under_the_pointer_are_named(tmp_path: Path) -> None:
    trace = Trace(memory="unified", time_unit="ms")
    account = trace.account("heap", "app", ["main (a.c:1)"])
    trace.snapshot(0, "start", {account: (100, 1)})
    trace.region_begin(20, "epoch")
    trace.region_begin(30, "batch")
    for time in range(30, 60, 5):
        trace.lines.append(f"t {time} 100 0 100")
    trace.region_end(60, "batch")
    trace.region_end(90, "epoch")
    trace.snapshot(100, "exit", {account: (50, 1)})
    page = write_page(tmp_path, trace.save(tmp_path))
    inside, outside = look(
        page,
        ["hover", "#timeline .u-over", 0.5, 0.5],
        ["text", "#timeline .tip"],
        ["hover", "#timeline .u-over", 0.999, 0.5],
        ["text", "#timeline .tip"],
    )[1::2]
    assert "in epoch › batch" in inside and "epoch" not in outside


@pytest.fixture(scope="module", name="pictures")
def fixture_pictures(pytorch: Page) -> List[Any]:
    pictures = ["evaluate", "[...document.querySelectorAll('#timeline .u-wrap canvas')].map((e) => e.toDataURL())"]
    return look(
        pytorch.path,
        ["click", ".moment button:text-is('End')"],
        pictures,
        ["press", "#timeline .plot", "Home"],
        pictures,
        ["click", ".moment button:text-is('End')"],
        pictures,
        ["choose", "#timeline select", "kind"],
        ["choose", "#timeline select", "owner"],  # drawn anew
        pictures,
        tabs="needed",
    )


def test_marks_move_on_a_plot_that_stays(pictures: List[Any]) -> None:
    end, start, back, anew = (pictures[i][0] for i in (1, 3, 5, 8))
    assert len(end) > 5000 and end != start
    assert end == back == anew


def test_signs_on_the_timeline_are_explained(training_seen: Seen, pytorch_seen: Seen, forking: Page) -> None:
    assert training_seen["signs"] == [["start-up call", "snapshot"]]
    assert pytorch_seen["signs"] == [["mark", "start-up call", "snapshot"]]
    assert look(forking.path, SIGNS, tabs="needed") == [["snapshot"]]


def test_names_of_rows_stay_in_sight_on_a_phone(training: Page) -> None:
    at = "document.querySelector('#owners tbody tr > :first-child').getBoundingClientRect().left"
    before, _, after, moved = look(
        training.path,
        ["evaluate", at],
        ["evaluate", "document.querySelector('#owners .scroll').scrollLeft = 200"],
        ["evaluate", at],
        ["evaluate", "document.querySelector('#owners tbody tr > :nth-child(2)').getBoundingClientRect().left"],
        width=390,
        height=844,
        tabs="needed",
    )
    assert before == after >= 0 and moved < 0


def test_the_areas_may_be_of_roles(pytorch: Page, pytorch_seen: Seen) -> None:
    profile = pytorch.profile
    rows = roles(profile, select(profile, "peak").composition)
    _, texts, names, shown = pytorch_seen["areas by role"]
    told = dict(zip(names, texts))
    expected = {row.name: row.bytes for row in rows if row.bytes}
    assert len(expected) >= 4
    assert {row[0]: row[1] for row in shown} == expected
    both = set(told) & set(expected)  # the rest is one area
    assert len(both) >= 4 and {name: told[name] for name in both} == {name: size(expected[name]) for name in both}


def test_the_areas_may_be_of_python_lines(pytorch_seen: Seen) -> None:
    _, texts, names, shown = pytorch_seen["areas by line"]
    told = dict(zip(names, texts))
    largest = {row[0]: row[1] for row in shown if row[1]}
    both = set(told) & set(largest)
    assert len(both) >= 4 and any("train.py" in name for name in both)
    assert {name: told[name] for name in both} == {name: size(largest[name]) for name in both}


def test_zoom_shows_the_part_that_was_dragged_over(real: Page, seen: Seen) -> None:
    """After the drag, the same place of the plot is another time."""
    results = seen["zoom"]
    last = max(list(real.profile.timeline.time) + [snapshot.time for snapshot in real.profile.snapshots])

    def milliseconds(text: str) -> float:
        """ "1 min 02 s: …", "2.61 s: …" """
        parts = re.findall(r"([\d.]+) (min|s|ms)\b", text.split(":")[0])
        return sum(float(number) * {"min": 60000, "s": 1000, "ms": 1}[unit] for number, unit in parts)

    assert milliseconds(results[2]) < 0.6 * last
    assert 0.9 * last - 1000 <= milliseconds(results[5]) <= last + 10


# ---- call tree -------------------------------------------------------------------------------


def test_the_call_tree_counts_blocks_and_what_was_ever_allocated(real: Page, seen: Seen) -> None:
    profile = real.profile
    last = profile.composition(len(profile.snapshots) - 1)
    totals = profile.lifetime().bytes
    counted = [account for account, row in enumerate(profile.accounts) if side_of(row.kind)]
    trees = seen["measures at the end"]
    blocks, allocated = json.loads(trees[2]), json.loads(trees[4])
    assert_adds_up(blocks)
    assert_adds_up(allocated)
    assert blocks[1] == sum(counted_blocks(profile.accounts[a].kind, last[a][1]) for a in counted if a in last)
    assert allocated[1] == sum(totals[account] for account in counted)


def test_the_call_tree_of_one_pool_and_of_one_owner(training: Page, training_seen: Seen) -> None:
    profile = training.profile
    composition = select(profile, "peak").composition
    for part in ("host", "device", "cudnn"):
        tree = training_seen[f"tree of {part}"][1]
        expected = held(
            profile,
            composition,
            lambda account: part in (side_of(profile.accounts[account].kind), profile.accounts[account].owner),
        )
        assert json.loads(tree)[1] == expected > 0


def test_frames_inside_packages_are_folded(pytorch: Page, pytorch_seen: Seen) -> None:
    profile, names = pytorch.profile, pytorch.names
    composition = select(profile, "peak").composition
    plain, _, folded, _ = pytorch_seen["folded"]
    plain, folded = json.loads(plain), json.loads(folded)
    assert folded[1] == plain[1] == held(profile, composition)
    assert_adds_up(folded)
    package_of = names.folding.internal
    inside = held(
        profile,
        composition,
        lambda account: any(package_of(f).package == "torch" for f in profile.stack(profile.accounts[account].node)),
    )
    labels = {names.frame(f) for f in profile.frames if package_of(f).package == "torch"}
    assert inside and not any(node[0] in labels for node in walk(folded))
    small = sum(node[1] for node in walk(folded) if node[0].startswith(("(places", "(deeper")))
    assert 0 <= inside - sum(node[1] for node in find(folded, "inside torch")) <= small
    assert len(list(walk(folded))) < len(list(walk(plain)))


def test_python_frames_have_colours_of_their_own(pytorch: Page, pytorch_seen: Seen) -> None:
    profile, names = pytorch.profile, pytorch.names
    (drawn,) = pytorch_seen["frames"]
    python = {names.frame(f) for f in profile.frames if profile.frame(f).type == "p"}
    hues: Dict[bool, List[float]] = {True: [], False: []}
    for name, fill in drawn:
        found = re.fullmatch(r"oklch\(\S+ \S+ (\S+)\)", fill)
        assert found, fill
        hues[name in python].append(float(found.group(1)))
    assert hues[True] and hues[False]
    assert max(hues[True]) < min(hues[False])


def test_a_frame_tells_its_figures_and_is_enlarged_by_a_click(real: Page) -> None:
    """The line of the script that caused most."""
    profile, names = real.profile, real.names
    composition = select(profile, "peak").composition
    tree = json.loads(look(real.path, ["choose", ORDER, "python"], ["evaluate", TREE], tabs="needed")[1])
    chosen = max(
        (node for node in walk(tree) if node[0].startswith("train.py") and not node[3]), key=lambda node: int(node[1])
    )
    probe = (
        f"[...document.querySelectorAll('.flame g')].filter((g) => g.dataset.name === {json.dumps(chosen[0])})"
        ".sort((a, b) => b.getBoundingClientRect().width - a.getBoundingClientRect().width)[0].id = 'probe'"
    )
    width = "document.querySelector('#probe').getBoundingClientRect().width"
    whole = "document.querySelector('.flame').clientWidth"
    button = "document.querySelector('#calls .tools button').disabled"
    results = look(
        real.path,
        ["choose", ORDER, "python"],
        ["evaluate", probe],
        ["point", "#probe"],
        ["text", ".flame-detail"],
        ["evaluate", width],
        ["click", "#probe"],
        ["evaluate", "document.querySelector('.flame .focused').getBoundingClientRect().width"],
        ["evaluate", whole],
        ["evaluate", button],
        ["click", "#calls .tools button"],
        ["evaluate", button],
        ["evaluate", TREE],
        tabs="needed",
    )
    told, narrow, wide, all_, enabled, disabled, again = (results[i] for i in (3, 4, 6, 7, 8, 10, 11))
    charged = held(
        profile,
        composition,
        lambda account: any(names.frame(f) == chosen[0] for f in profile.stack(profile.accounts[account].node)),
    )
    assert chosen[1] <= charged
    assert told.startswith(f"{chosen[0]}: {size(chosen[1])}, {100 * chosen[1] / tree[1]:.1f} %")
    assert narrow < wide and abs(wide - all_) <= 2
    assert (enabled, disabled) == (False, True)
    assert json.loads(again) == tree


def test_a_search_that_is_typed_marks_what_it_finds(pytorch: Page, pytorch_seen: Seen) -> None:
    profile, names = pytorch.profile, pytorch.names
    pattern, results = SEARCHED, pytorch_seen["searched"]
    tree = json.loads(results[0])
    matching = {node[0] for node in walk(tree) if re.search(pattern, node[0])}
    shown = outermost(tree, pattern)
    through = held(
        profile,
        select(profile, "peak").composition,
        lambda account: any(re.search(pattern, names.frame(f)) for f in profile.stack(profile.accounts[account].node)),
    )
    small = sum(node[1] for node in walk(tree) if node[0].startswith(("(places", "(deeper")))
    assert matching and 0 <= through - shown <= small
    assert f": {size(shown)}, {100 * shown / tree[1]:.1f} %" in results[2]
    assert results[3] and set(results[3]) <= matching
    assert results[5] == "0 matches: 0 B, 0.0 %"
    assert results[7] == "Invalid regular expression" and results[9] == []


def outermost(node: List[Any], pattern: str) -> int:
    """Bytes of the outermost nodes whose names match."""
    if re.search(pattern, node[0]):
        return int(node[1])
    return sum(outermost(child, pattern) for child in node[3])


# ---- tables ----------------------------------------------------------------------------------


def test_a_table_shows_all_rows_when_asked(pytorch: Page, pytorch_seen: Seen) -> None:
    profile, names = pytorch.profile, pytorch.names
    composition = select(profile, "peak").composition
    few, many, back = pytorch_seen["all rows"][1:6:2]
    sums: Dict[str, int] = {}
    for account, (n_bytes, _) in composition.items():
        sums[names.library(account)] = sums.get(names.library(account), 0) + n_bytes
    assert few == back == 25 < len(many)
    assert {row[0]: row[1] for row in many} == sums


def test_tables_are_sorted_with_the_keyboard_alone(seen: Seen) -> None:
    _, rows, focused, said = seen["sorted"]
    names = [row[0] for row in rows]
    assert names == sorted(names) and len(names) > 3
    assert focused.startswith("owner") and said[0] == "ascending"


def test_temporaries_and_lines_of_a_real_run(pytorch: Page, pytorch_seen: Seen) -> None:
    profile, names = pytorch.profile, pytorch.names
    counts = profile.counts()
    temporaries, lines, total = pytorch_seen["tables"]
    most = max(counts.values(), key=lambda each: each.temporaries)
    assert temporaries[0][0] == most.temporaries
    expected: Dict[str, int] = {}
    for account, (n_bytes, _) in select(profile, "peak").composition.items():
        frame = names.charged(account)
        if frame and side_of(profile.accounts[account].kind):
            label = f"{names.file(frame)}:{profile.frame(frame).line}"
            expected[label] = expected.get(label, 0) + n_bytes
    told: Dict[str, int] = {}
    for label, n_bytes, *_ in lines:  # "train.py:17 (<listcomp>)", where functions share the line
        line = label.partition(" ")[0]
        if line.startswith("train.py"):
            told[line] = told.get(line, 0) + n_bytes
    assert told and told == {name: expected.get(name, 0) for name in told}
    assert total[0][1] == held(profile, select(profile, "peak").composition)


# ---- blocks ----------------------------------------------------------------------------------


class Life(NamedTuple):
    begin: int
    end: int  # of the run, if it was never freed
    bytes: int
    account: int
    is_freed: bool


def lives(profile: Profile, side: str) -> List[Life]:
    """In the order of their births."""
    rows = profile.blocks
    frees = set(profile.frees)
    end = max([profile.last_time] + [snapshot.time for snapshot in profile.snapshots] + list(profile.timeline.time))
    live: Dict[int, Tuple[int, int]] = {}
    found: Dict[int, Life] = {}
    for row, (at, address, n_bytes, account) in enumerate(zip(rows[0::4], rows[1::4], rows[2::4], rows[3::4])):
        if side_of(profile.accounts[account].kind) != side:
            continue
        if row in frees:
            number, born = live.pop(address)
            found[number] = found[number]._replace(end=at, is_freed=True)
        else:
            live[address] = (row, at)
            found[row] = Life(at, end, n_bytes, account, False)
    return [found[row] for row in sorted(found)]


@pytest.mark.parametrize("name, side", [("training", "device"), ("pytorch", "host")])
def test_blocks_over_time_lie_where_they_lived(request: Any, name: str, side: str) -> None:
    page: Page = request.getfixturevalue(name)
    profile = page.profile
    every = [life for life in lives(profile, side) if profile.accounts[life.account].owner != "cache"]
    kept = sorted(sorted(every, key=lambda life: -life.bytes)[:300], key=lambda life: life.begin)
    # Long enough to be hit: the whole run is some hundreds of pixels wide.
    pixel = (max(life.end for life in kept) - kept[0].begin) / 200
    largest = max(kept, key=lambda life: (life.end - life.begin > max(20, pixel), life.bytes))
    times = sorted({life.begin for life in kept})
    top = max(sum(life.bytes for life in kept if life.begin <= at < max(life.end, life.begin + 1)) for at in times)
    end = max(life.end for life in kept)
    first = kept[0].begin
    left = max(0, first - (end - first) / 40)
    middle = (largest.begin + largest.end) / 2
    below = sum(life.bytes for life in kept[: kept.index(largest)] if life.begin <= middle < life.end)

    def place(view: Tuple[float, float], width: float) -> Tuple[float, float]:
        """Of the block's middle, as shares of the canvas."""
        x = 74 + (middle - view[0]) / (view[1] - view[0]) * (width - 74)
        y = (360 - 24) * (1 - (below + largest.bytes / 2) / top)
        return x / width, y / 360

    width = look(page.path, ["evaluate", "document.querySelector('#lives canvas').clientWidth"], tabs="needed")[0]
    x, y = place((left, end), width)
    results = look(
        page.path,
        ["text", "#lives p:not([hidden])"],
        ["hover", "#lives canvas", x, y],
        ["text", "#lives output"],
        ["drag", "#lives canvas", x - 0.05, min(0.999, x + 0.05)],
        ["evaluate", "document.querySelector('#lives .tools button').disabled"],
        ["hover", "#lives canvas", 74 / width + (1 - 74 / width) * 0.5, y],
        ["text", "#lives output"],
        ["click", "#lives .tools button"],
        ["evaluate", "document.querySelector('#lives .tools button').disabled"],
        tabs="needed",
    )
    note, told, is_whole, zoomed, after = (results[i] for i in (0, 2, 4, 6, 8))
    assert f"{len(kept)} blocks of {side} memory" in note
    owner = profile.accounts[largest.account].owner
    assert told.startswith(f"{size(largest.bytes)}, {owner}")
    assert f"allocated at {moment(largest.begin, 'ms')}" in told
    assert ("never freed" in told) != largest.is_freed
    assert (is_whole, after) == (False, True)
    assert zoomed.startswith(size(largest.bytes))


def test_the_map_has_the_blocks_that_live_at_the_moment(training: Page, training_seen: Seen) -> None:
    profile = training.profile
    results = training_seen["maps"][0::2]
    for labels, name in zip(results, ("peak", "peak-device", "end")):
        time = select(profile, name).time
        live = [life for life in lives(profile, "device") if life.begin <= time < life.end + (not life.is_freed)]
        owned = [(profile.accounts[life.account].owner, life.bytes) for life in live]
        rows = sorted((n_bytes for owner, n_bytes in owned if owner != "tensor"), reverse=True)
        assert [label.split(",")[0] for label in labels] == [size(n_bytes) for n_bytes in rows]
        # Tensors lie in the allocator's segments, and these say how much of them is in use.
        used = [label.split(", ")[1].split(" %")[0] if "used" in label else "0" for label in labels]
        in_use = sum(n_bytes * float(share) / 100 for n_bytes, share in zip(rows, used))
        tensors = sum(n_bytes for owner, n_bytes in owned if owner == "tensor")
        assert abs(in_use - tensors) <= sum(rows) / 1000


# ---- several processes -----------------------------------------------------------------------


def test_each_process_has_its_own_figures(forking: Page) -> None:
    steps: List[List[Any]] = []
    for index in (1, 2, 3):
        shown = [["rows", "#owners tbody"], ["evaluate", TREE], ["text", "#headline .size b"]]
        steps += [["choose", ".bar select", {"index": index}], *shown]
    n_processes, *results = look(forking.path, ["count", ".bar > .choice option"], *steps, tabs="needed")
    assert n_processes == 4
    assert sorted(results[3::4]) == sorted(size(profile.peaks["host"].host) for profile in forking.profiles)
    found = {json.dumps([forking.owner_table(results[i]), json.loads(results[i + 1])[1]]) for i in (1, 5, 9)}
    expected = set()
    for profile in forking.profiles:
        peak = select(profile, "peak").composition
        expected.add(json.dumps([owners(profile, peak), held(profile, peak)]))
    assert {json.dumps(json.loads(text), sort_keys=True) for text in found} == {
        json.dumps(json.loads(text), sort_keys=True) for text in expected
    }


def test_the_sum_of_processes_counts_what_they_share_once(forking: Page) -> None:
    """Three megabytes in all three; one and two in the children, which may live at the same time."""
    tree, total, _, compared, change = look(
        forking.path,
        ["evaluate", TREE],
        ["rows", "#owners tfoot"],
        ["pick", "#timeline .u-over", 0.001, ["Shift"]],
        ["text", ".comparison"],
        ["rows", "#owners tfoot"],
        tabs="needed",
    )
    root = json.loads(tree)
    assert_adds_up(root)
    assert outermost(root, r"^hold \(") in (5000000, 6000000) and 5000000 <= total[0][2] < 7000000
    assert compared.startswith("vs. ") and size(change[0][-2]) in compared


# ---- whoever looks ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["training", "pytorch", "forking"])
@pytest.mark.parametrize("width, height, scheme", [(1280, 900, "light"), (390, 844, "dark"), (3840, 2160, "dark")])
def test_real_pages_fit_the_screen_also_in_comparison(
    request: Any, name: str, width: int, height: int, scheme: str
) -> None:
    page: Page = request.getfixturevalue(name)
    results = look(
        page.path,
        ["evaluate", OVERFLOW],
        ["pick", "#timeline .u-over", 0.4, ["Shift"]],
        ["evaluate", OVERFLOW],
        ["screenshot", str(SCREENSHOTS / f"{name}-{width}.png"), True],
        width=width,
        height=height,
        scheme=scheme,
        tabs="needed",
    )
    assert results[0] <= 0 and results[2] <= 0


@pytest.mark.parametrize("name", ["training", "pytorch"])
def test_a_print_has_the_first_screen_and_the_open_tab_and_no_controls(request: Any, tmp_path: Path, name: str) -> None:
    page: Page = request.getfixturevalue(name)
    path = tmp_path / "report.pdf"
    _, controls, clipped, empty, answer, _ = look(
        page.path,
        ["media", "print", 718, 1000],  # A4 within its margins
        [
            "evaluate",
            "[...document.querySelectorAll('.bar button, .bar select, .moment button, [role=tab], .tools button, .more, .above select')]"
            ".filter((e) => e.checkVisibility()).length",
        ],
        [
            "evaluate",
            "[...document.querySelectorAll('table, canvas, svg')].filter((e) => e.checkVisibility() &&"
            " e.getBoundingClientRect().right > document.documentElement.clientWidth + 1)"
            ".map((e) => e.closest('section').id)",
        ],
        [
            "evaluate",
            "[...document.querySelectorAll('section:not([hidden])')].filter((s) => s.innerText.length < 40).map((s) => s.id)",
        ],
        ["text", "#headline .size"],
        ["pdf", str(path)],
    )
    assert controls == 0 and clipped == [] and empty == []
    assert size(held(page.profile, select(page.profile, "peak").composition)) in answer
    n_pages = len(re.findall(rb"/Type\s*/Page\b", path.read_bytes()))
    assert 1 <= n_pages <= 8


def test_a_reader_with_keys_alone_gets_everywhere(real: Page) -> None:
    """Past the bar; to a tab, with an arrow to the next one; to a row of its table."""
    first = real.profile.snapshots[0]
    results = look(
        real.path,
        ["keys", "Tab"],
        ["focused"],
        ["keys", "Enter"],
        ["evaluate", "location.hash"],
        ["press", "#tab-system", "ArrowRight"],
        ["focused"],
        ["press", "#snapshots tbody tr:nth-child(1)", "Enter"],
        ["text", "#chosen"],
        tabs="none",
    )
    assert results[1] == "Skip to the report" and results[5] == "Run"
    assert results[7] == f"snapshot {first.id}, {moment(first.time, 'ms')}"


def test_keys_choose_moments_tabs_and_the_span(real: Page) -> None:
    """Wherever the focus is, but in a field."""
    width = "parseFloat(document.querySelector('.brush').style.width)"
    opened = "document.querySelector('[role=tab][aria-selected=true]').innerText"
    before, at_first, _, tab, _, now, _, compared, _, zoomed, _, focused, _, typed, still = look(
        real.path,
        ["text", "#chosen"],
        ["evaluate", width],
        ["keys", "2"],
        ["evaluate", opened],
        ["keys", "ArrowLeft"],
        ["text", "#chosen"],
        ["keys", "Shift+ArrowLeft"],
        ["text", ".comparison"],
        ["keys", "+"],
        ["evaluate", width],
        ["keys", "/"],
        ["focused"],
        ["keys", "1"],
        ["evaluate", "document.getElementById('search').value"],
        ["evaluate", opened],
        tabs="none",
    )
    assert tab == still == "Flame graph" and now != before and compared.startswith("vs. ")
    assert zoomed < at_first and focused.startswith("Search") and typed == "1"
