# SPDX-License-Identifier: GPL-2.0-or-later
"""The address of a page is what is looked at: it is readable, opened elsewhere it shows the same, and back goes back."""

from pathlib import Path
from typing import Any, Dict, List
from urllib.parse import parse_qsl

import pytest

from tests.reporter.traces import Trace
from tests.web.browser import look, visit, write_page
from tests.web.pages import TREE, Page
from tests.serve.served import Served

# All that can be seen: texts, what is open, how controls stand.
SEEN = """(() => {
    const controls = [...document.querySelectorAll('main select, main input')];
    const open = [...document.querySelectorAll('[role=tab][aria-selected=true]')].map((e) => e.innerText);
    const shown = controls.filter((e) => !e.closest('[hidden]'));
    return JSON.stringify([document.querySelector('main').innerText, open, shown.map((e) => [e.value, e.checked])]);
})()"""


@pytest.fixture(scope="module", name="trace")
def fixture_trace(tmp_path_factory: Any) -> Path:
    """Of a run with two owners, thirty lines, and snapshots 1 to 5, of which the fourth is the fullest."""
    directory = tmp_path_factory.mktemp("links")
    trace = Trace(memory="unified", time_unit="ms", pid="7", command="train.py")
    frames = [[f"alloc_{i} (a.c:{i})", f"py step (/app/run.py:{i})", "main (m.c:1)"] for i in range(1, 31)]
    lines = [trace.account("heap", "app" if i % 2 else "framework", stack) for i, stack in enumerate(frames)]
    pool = trace.account("device", "tensor", ["cudaMalloc (libcuda.so)", "py pool (/app/run.py:40)", "main (m.c:1)"])
    for index, size in enumerate((100, 200, 400, 900, 300)):
        held = {account: (size * (i + 1), i + 1) for i, account in enumerate(lines)}
        trace.snapshot(100 * index + 1, "time", {**held, pool: (10 * size, 1)})
    trace.snapshot(600, "exit", {pool: (5, 1)})
    return trace.save(directory)


@pytest.fixture(scope="module", name="page")
def fixture_page(trace: Path) -> Path:
    return write_page(trace.parent, trace)


def parts(fragment: str) -> Dict[str, str]:
    return dict(parse_qsl(fragment, keep_blank_values=True))


CHOICES: List[List[Any]] = [
    ["click", "[aria-label='Previous snapshot']"],
    ["click", "[aria-label='Previous snapshot']"],
    ["click", "#tab-flame-graph"],
    ["choose", "#calls label:has-text('Order') select", "bottom-up"],
    ["evaluate", "document.querySelector('#calls input[type=checkbox]').click()"],
    ["fill", "#calls input[type=search]", "alloc_2."],
    ["click", "#tab-by-owner"],
    ["click", "#owners tbody tr:nth-child(2)"],
    ["click", "#tab-by-line"],
    ["fill", "#lines .filter", r"run\.py:1[0-9]$"],
]


def test_a_view_opened_in_another_browser_is_the_same(page: Path) -> None:
    *_, fragment, seen, copied = look(
        page,
        *CHOICES,
        ["fragment"],
        ["evaluate", SEEN],
        ["evaluate", "document.querySelector('#copy-link').click(), navigator.clipboard.readText()"],
        tabs="none",
    )
    again, kept, rows = look(
        page, ["evaluate", SEEN], ["fragment"], ["count", "#lines tbody tr"], tabs="none", fragment=fragment
    )
    assert again == seen and kept == fragment
    assert rows == 10  # of the lines 10 to 19
    assert copied.startswith("file://") and parts(copied.partition("#")[2]).items() >= parts(fragment).items()


def test_a_view_of_a_server_has_its_token_and_is_the_same(trace: Path) -> None:
    served: Any = Served(trace)
    copied = ["evaluate", "document.querySelector('#copy-link').click(), navigator.clipboard.readText()"]
    try:
        *_, fragment, seen, link = look(served.address, *CHOICES, ["fragment"], ["evaluate", SEEN], copied, tabs="none")
        found = look(
            served.address,
            ["evaluate", SEEN],
            ["evaluate", "location.href"],
            ["attributes", "meta[name=served]", "content"],
            fragment=fragment,
            tabs="none",
        )
        status, _, _ = served.get("/" + "#" + fragment)
    finally:
        served.stop()
    assert found == [seen, f"{served.address}#{fragment}", ["yes"]] and status in (400, 403, 404)
    assert link.partition("#")[0] == served.address and parts(fragment)["owner"] == "framework"


def test_the_stack_of_a_block_is_shown_again(tmp_path: Path) -> None:
    """Of the third of four blocks, of two places; and no more once all is shown again."""
    trace = Trace(memory="unified", time_unit="ms")
    trace.snapshot(0, "start", {})
    one, other = (trace.account("device", "tensor", [f"take_{i} (a.c:{i})", "main (m.c:1)"]) for i in (1, 2))
    for i, account in enumerate((one, other, other, one)):
        trace.block(1, 0x1000000 * (i + 1), 9000000 - i, account)
    trace.snapshot(3, "exit", {one: (17999997, 2), other: (17999997, 2)})
    page = write_page(tmp_path, trace.save(tmp_path))
    frames = ["texts", "#blocks .stack li"]
    chosen: List[Any] = [["click", "#blocks tbody tr:nth-child(3)"], ["fragment"], ["evaluate", SEEN], frames]
    _, fragment, seen, stack, *_, rest, address = look(page, *chosen, ["click", ".chip"], frames, ["fragment"])
    assert stack == ["take_2 (a.c:2)", "main (m.c:1)"] and rest == [] and "place" not in parts(address)
    assert look(page, ["evaluate", SEEN], frames, fragment=fragment, tabs="none") == [seen, stack]


def test_a_pointer_that_went_down_elsewhere_chooses_no_block(tmp_path: Path) -> None:
    """A section may move below the pointer while a button of it is held."""
    trace = Trace(memory="unified", time_unit="ms")
    trace.snapshot(0, "start", {})
    account = trace.account("device", "tensor", ["take (a.c:1)"])
    trace.block(1, 0x1000000, 9000000, account)
    trace.snapshot(100, "exit", {account: (9000000, 1)})
    page = write_page(tmp_path, trace.save(tmp_path))
    there = "const c = document.querySelector('#lives canvas');"
    at = "{bubbles: true, clientX: box.left + box.width / 2, clientY: box.top + box.height / 3}"
    send = "for (const type of types) c.dispatchEvent(new PointerEvent(type, {at}))".replace("{at}", at)
    up, both = (
        f"(() => {{ {there} const box = c.getBoundingClientRect(); const types = {types}; {send} }})()"
        for types in ("['pointerup']", "['pointerdown', 'pointerup']")
    )
    shown = ["texts", "#lives .stack li"]
    assert look(page, ["evaluate", up], shown, ["evaluate", both], shown)[1::2] == [[], ["take (a.c:1)"]]


def test_the_address_is_readable(page: Path) -> None:
    *_, fragment = look(page, *CHOICES, ["fragment"], tabs="none")
    told = parts(fragment)
    assert (told["at"], told["owner"], told["calls.order"], told["calls.fold"]) == (
        "2",
        "framework",
        "bottom-up",
        "yes",
    )
    assert told["calls.search"] == "alloc_2." and told["lines.filter-python-lines"] == r"run\.py:1[0-9]$"
    assert told["tab"] == "by-line"
    assert len(fragment) < 250


def test_a_page_as_it_opens_has_no_fragment(page: Path) -> None:
    there, address = look(
        page,
        ["click", "[aria-label='Previous snapshot']"],
        ["click", "[aria-label='Next snapshot']"],
        ["evaluate", "location.href"],
        tabs="none",
    )[1:]
    assert address.endswith("report.html") and not there


def test_a_comparison_is_in_the_address(page: Path) -> None:
    *_, fragment, chosen, both = look(
        page,
        ["click", "[aria-label='Previous snapshot']"],
        ["pick", "#timeline .u-over", 0.02, ["Shift"]],
        ["fragment"],
        ["text", "#chosen"],
        ["text", ".comparison"],
        tabs="none",
    )
    assert "with" in parts(fragment) and both.startswith("vs. ")
    again = look(page, ["text", "#chosen"], ["text", ".comparison"], fragment=fragment, tabs="none")
    assert again == [chosen, both]


def test_back_and_forward_lead_through_the_choices(page: Path) -> None:
    step = "[aria-label='Previous snapshot']"
    said = ["text", "#chosen"]
    start, _, one, _, two, _, back, _, further, _, forth, narrowed = look(
        page,
        said,
        ["click", step],
        said,
        ["click", step],
        said,
        ["back"],
        said,
        ["back"],
        said,
        ["forward"],
        said,
        ["fragment"],
        tabs="none",
    )
    assert len({start, one, two}) == 3
    assert (back, further, forth) == (one, start, one) and "at" in parts(narrowed)


def test_back_undoes_a_setting_and_what_the_tree_is_narrowed_to(page: Path) -> None:
    order = ["evaluate", "document.querySelector('#calls label:has(select):nth-of-type(2) select').value"]
    results = look(
        page,
        ["choose", "#calls label:has-text('Order') select", "python"],
        order,
        ["click", "#timeline .values button"],
        ["count", ".bar .chip"],
        ["back"],
        ["count", ".bar .chip"],
        order,
        ["back"],
        order,
        fragment="tab=flame-graph",
        tabs="none",
    )
    assert [results[i] for i in (1, 3, 5, 6, 8)] == ["python", 1, 0, "python", "top-down"]


def test_typing_makes_no_steps(page: Path) -> None:
    typed = ["evaluate", "history.length"]
    filter_ = "#lines .filter"
    before, _, _, _, after, fragment = look(
        page,
        typed,
        ["fill", filter_, "r"],
        ["fill", filter_, "ru"],
        ["fill", filter_, "run"],
        typed,
        ["fragment"],
        fragment="tab=by-line",
        tabs="none",
    )
    assert before == after and parts(fragment)["lines.filter-python-lines"] == "run"


def test_a_link_to_a_section_keeps_the_view(page: Path) -> None:
    said, _, still, seen, fragment = look(
        page,
        ["text", "#chosen"],
        ["evaluate", "location.hash = '#owners'"],
        ["text", "#chosen"],
        ["count", ".panel:not([hidden]) #owners"],
        ["fragment"],
        fragment="at=2&tab=run",
        tabs="none",
    )
    assert "snapshot 2" in said and still == said and seen == 1
    assert parts(fragment) == {"at": "2", "tab": "by-owner"}


def test_an_address_leads_to_its_section(page: Path) -> None:
    top = ["evaluate", "document.querySelector('#calls').getBoundingClientRect().top"]
    (found,) = look(page, top, tabs="none", fragment="calls&tab=run", height=600)
    assert 0 <= found < 200  # a short page ends before the tree is at its top


HOSTILE = [
    "%",
    "at=99999999999999999999&with=-1&process=0&owner=nobody&line=x&place=-1:x",
    "at=__proto__&with=constructor&owner=__proto__&__proto__=1&constructor.name=x&tab=__proto__&span=9-1",
    "place=1:nothing+of+that+name&place=0:&at=",
    "calls.order=sideways&calls.fold=perhaps&calls.show=<img src=x onerror=alert(1)>",
    "tab=<script>alert(1)</script>&span=1-x&lines.filter-python-lines=%3Cb%3E&x.y=z",
    "owner=" + "%00" * 50 + "&at=%F0%9F%92%A9",
    "javascript:alert(1)",
]


SHOWN: List[List[Any]] = [
    ["text", "#chosen"],
    ["count", ".chip"],
    ["attributes", "[role=tab][aria-selected=true]", "id"],
    ["count", "[role=alert]"],
]


def test_what_an_address_asks_for_in_vain_is_passed_over(page: Path) -> None:
    """Both of a page that is there and of one that is opened."""
    steps: List[List[Any]] = []
    for fragment in HOSTILE:
        steps += [["evaluate", f"location.hash = {fragment!r}, null"], ["until", "true", 5000], *SHOWN]
    found = look(page, *SHOWN, *steps, tabs="none")
    n = len(SHOWN)
    for i, fragment in enumerate(HOSTILE):
        at = n + i * (n + 2) + 2
        assert found[at : at + n] == found[:n], fragment
    assert found[1:n] == [0, ["tab-by-line"], 0]
    assert look(page, *SHOWN, tabs="none", fragment="&".join(HOSTILE[:8])) == found[:n]


def test_each_process_has_its_address(forking: Page) -> None:
    """Of three processes and their sum; a moment of a child, as a name or a number."""
    *_, fragment, seen = look(
        forking.path,
        ["choose", ".bar label:has-text('Process') select", {"index": 2}],
        ["click", "[aria-label='Next snapshot']"],
        ["fragment"],
        ["evaluate", SEEN],
        tabs="none",
    )
    pids = {profile.manifest["pid"] for profile in forking.profiles}
    assert parts(fragment)["process"] in pids
    assert look(forking.path, ["evaluate", SEEN], fragment=fragment, tabs="none") == [seen]


def test_the_sum_of_processes_names_whose_moment_it_is(forking: Page) -> None:
    *_, fragment, seen = look(
        forking.path,
        ["click", "[aria-label='Previous snapshot']"],
        ["fragment"],
        ["evaluate", SEEN],
        tabs="none",
    )
    assert "-of-" in parts(fragment)["at"]
    assert look(forking.path, ["evaluate", SEEN], fragment=fragment, tabs="none") == [seen]


def test_a_real_runs_view_is_the_same_elsewhere(training: Page) -> None:
    """All sections of a whole training run, and the place of a block."""
    *_, fragment, seen, _, of_block, tree = look(
        training.path,
        ["click", training.bar_moment],
        ["click", "#lines tbody tr:nth-child(2)"],
        ["choose", "#timeline select", "library"],
        ["fragment"],
        ["evaluate", SEEN],
        ["click", "#blocks tbody tr:nth-child(3)"],
        ["fragment"],
        ["evaluate", TREE],
    )
    told = parts(fragment)
    assert told["tab"] == "by-line" and told["timeline.group-by"] == "library" and ".py:" in told["line"]
    assert ":" in parts(of_block)["place"]
    again, *_, tree_again = look(
        training.path,
        ["evaluate", SEEN],
        ["evaluate", f"location.hash = {of_block!r}, null"],
        ["until", "document.querySelector('.chip')?.innerText.includes('allocated by')", 20000],
        ["click", "#tab-flame-graph"],
        ["evaluate", TREE],
        fragment=fragment,
        tabs="none",
    )
    assert again == seen and tree_again == tree


def test_a_page_that_may_not_write_its_address_works(page: Path) -> None:
    """As one inside a page of another origin."""
    refuse = "history.pushState = history.replaceState = () => { throw new DOMException('no', 'SecurityError'); };"
    visited = visit(page, ["click", "[aria-label='Previous snapshot']"], ["text", "#chosen"], before=refuse)
    assert visited.trouble == [] and visited.results[1]
