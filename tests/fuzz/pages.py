# SPDX-License-Identifier: GPL-2.0-or-later
"""Pages of traces in which any name may be hostile, opened in Chromium: no script runs, nothing is complained of, nothing is wider than the
window, and the first sentence is there.

    python3 -m tests.fuzz.pages [--seed=N] [--runs=N] [--keep=DIRECTORY]

The same seed makes the same pages.
"""

import random
import sys
import tempfile
from pathlib import Path
from typing import List, NamedTuple, Optional, Tuple

from tests.fuzz import searching
from tests.fuzz.mutations import Lines, golden, mutant
from tests.fuzz.traces import attempt
from tests.harness import BUILD
from tests.reporter.traces import escape
from tests.web.browser import need_page, visit

_MOST_OPENING = 60000  # milliseconds

_TEXTS = (
    "<script>window.hit = 1</script>",
    "</script><script>window.hit = 1</script>",
    "<img src=x onerror='window.hit = 1'>",
    '"><svg onload="window.hit = 1">',
    "' onfocus='window.hit = 1' autofocus='",
    "</style></title></textarea><b class=injected>",
    "javascript:window.hit=1",
    "{{data}}${window.hit=1}",
    "<!--<script>",
    "]]>",
    "\u202eesrever\u202c",
    "\u0645\u0631\u062d\u0628\u0627 (a.c:1)",
    "e\u0301\u0301\u0301\u0301" * 40,
    "\U0001f4a9" * 50,
    "a\tb\x00c\x1b[2Jd\x7fe\u2028f\u0085",
    "\udcff\udcfe",
    "x" * 4000,
    "word " * 500,
    "/".join("directory" for _ in range(200)),
    "std::vector<" * 60 + ">" * 60,
    "__proto__",
    "constructor",
    "hasOwnProperty",
    "toString",
    "valueOf",
    "NaN",
    "null",
    "undefined",
    "0",
    "-1",
    "",
    " ",
    "=1+1",
)
_NAMES = (
    "__proto__",
    "constructor",
    "toString",
    "hasOwnProperty",
    "valueOf",
    "then",
    "length",
    "0",
    "-1",
    "e" * 64,
    "NaN",
)

# What of the page may not be, as the browser sees it.
LOOK = """(() => {
    const found = [];
    if (window.hit !== undefined) found.push('a script ran');
    if (document.querySelector('.injected, img, [onload], [onerror], [onfocus]')) found.push('markup of a name');
    for (const of of [Object.prototype, Array.prototype, Function.prototype])
        if (Object.keys(of).length) found.push(`a prototype has ${Object.keys(of)}`);
    const over = document.documentElement.scrollWidth - document.documentElement.clientWidth;
    if (over > 0) found.push(`${over} pixels wider than the window`);
    const first = document.querySelector('#headline .statement, #headline p, main p');
    if (!first || !first.innerText.trim()) found.push('no first sentence');
    return found;
})()"""

# Everything that can be chosen is chosen once.
CHOOSE = """(() => {
    for (const row of [...document.querySelectorAll('tbody tr')].slice(0, 25)) row.click();
    for (const choice of document.querySelectorAll('select'))
        for (const option of [...choice.options].slice(0, 4)) {
            choice.value = option.value;
            choice.dispatchEvent(new Event('change', { bubbles: true }));
        }
    return new Promise((done) => setTimeout(done, 300));
})()"""


def _text(rng: random.Random, number: int) -> bytes:
    """Mostly with a number, or two frames would be one."""
    text = rng.choice(_TEXTS) + (str(number) if rng.random() < 0.6 else "")
    return escape(text).encode("utf-8", "surrogateescape")


def hostile(lines: Lines, rng: random.Random) -> bytes:
    """A trace that can be read, with other names: some of its strings, what its manifest says, owners, roles, counters."""
    share = rng.choice((0.1, 0.5, 1.0))
    names = {}
    made: Lines = []
    for number, line in enumerate(lines):
        words = line.rstrip(b"\n").split(b" ")
        if (
            words[0] in (b"s", b"m")
            and len(words) > 2
            and rng.random() < share
            and words[1] not in (b"time-unit", b"memory")
        ):
            words = words[:2] + [_text(rng, number)]
        elif words[0] in (b"g", b"r", b"k") or (words[0] == b"K" and len(words) >= 4):
            at = {b"g": 1, b"r": 2, b"k": 1, b"K": len(words) - 1}[words[0]]
            if words[at] not in names:
                names[words[at]] = rng.choice(_NAMES).encode() if rng.random() < share / 2 else words[at]
            words[at] = names[words[at]]
        made.append(b" ".join(words) + b"\n")
    return b"".join(made)


def _make(rng: random.Random, originals: List[Lines], directory: Path) -> Optional[Tuple[Path, str]]:
    """A page and how it was made; None: the trace was refused."""
    paths = []
    for name in ("a", "b")[: rng.choice((1, 1, 2))]:
        lines = list(rng.choice(originals))
        if rng.random() < 0.3:
            lines = mutant([lines], rng).splitlines(True)
        paths.append(directory / name)
        paths[-1].write_bytes(hostile(lines, rng))
    page = directory / "page.html"
    if page.exists():
        page.unlink()
    command = rng.choice(("report", "diff")) if len(paths) > 1 else "report"
    words = [command, "--html", "-o", str(page), *map(str, paths)]
    outcome = attempt(words, directory)
    if outcome.status not in (0, 1) or not page.exists():
        return None
    return page, " ".join(words)


class Tally(NamedTuple):
    pages: int
    refused: int
    faults: List[str]
    slowest: int  # milliseconds until a page was there


def search(seed: int, n_runs: int, keep: Path) -> Tally:
    """Looks for faults in so many pages."""
    rng = random.Random(seed)
    originals = golden()
    pages, refused, slowest = 0, 0, 0
    faults: List[str] = []
    with tempfile.TemporaryDirectory() as made:
        directory = Path(made)
        while pages < n_runs:
            made_page = _make(rng, originals, directory)
            if not made_page:
                refused += 1
                continue
            pages += 1
            width = rng.choice((390, 1280))
            try:
                visited = visit(made_page[0], ["evaluate", LOOK], ["evaluate", CHOOSE], ["evaluate", LOOK], width=width)
                found = [*visited.trouble, *visited.results[0], *visited.results[2]]
                slowest = max(slowest, visited.opened_ms)
                if visited.opened_ms > _MOST_OPENING:
                    found.append(f"{visited.opened_ms} ms")
            except AssertionError as error:
                found = [str(error)[-400:]]
            if found:
                keep.mkdir(parents=True, exist_ok=True)
                kept = []
                for name in ("a", "b"):
                    if (directory / name).exists():
                        kept.append(keep / f"{seed}-{pages}.{name}")
                        kept[-1].write_bytes((directory / name).read_bytes())
                faults.append(f"{kept}, {width} wide, {made_page[1].split()[0]}: {found[:4]}")
            for name in ("a", "b"):
                if (directory / name).exists():
                    (directory / name).unlink()
    return Tally(pages, refused, faults, slowest)


def main() -> int:
    parser = searching.counted_parser(__doc__, 20)
    parser.add_argument("--keep", type=Path, default=BUILD / "fuzz" / "pages")
    arguments = parser.parse_args()
    need_page()
    tally = search(arguments.seed, arguments.runs, arguments.keep)
    print(
        f"seed {arguments.seed}: {tally.pages} pages, {tally.refused} refused, {len(tally.faults)} faults, slowest {tally.slowest} ms"
    )
    return searching.ended(tally.faults)


if __name__ == "__main__":
    sys.exit(main())
