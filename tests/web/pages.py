# SPDX-License-Identifier: GPL-2.0-or-later
"""A page and the model of what it shows; figures of the model as the page's tables have them."""

import hashlib
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Sequence

from jmassif.analysis.aggregate import ledger
from jmassif.attribution.names import Names
from jmassif.model.records import LiveBytesByAccount, side_of
from jmassif.model.run import Profile
from jmassif.reader.builder import load_file

from tests.harness import PYTHON, ROOT, Recording, made_once, recorded, sim_build
from tests.web.browser import write_page


# Shows the timeline's whole run: a page opens where memory is.
WHOLE_RUN = [
    "evaluate",
    "[...document.querySelectorAll('#timeline .zoom button')].find((e) => e.innerText === 'Whole run').click()",
]


class Page:
    def __init__(self, path: Path, profiles: List[Profile]) -> None:
        self.path = path
        self.profiles = profiles
        self.profile = profiles[0]
        self.names = Names(self.profile)

    @property
    def has_device(self) -> bool:
        return any(snapshot.device for snapshot in self.profile.snapshots)

    @property
    def bar_moment(self) -> str:
        """A button that leads to a moment which is not the page's first."""
        return f".moment button:text-is('{'Host peak' if self.has_device else 'End'}')"

    def owner_table(self, rows: List[List[Any]]) -> Dict[str, List[int]]:
        """As owners() has it. Columns: owner, group, host, device, total, share, blocks, …, or "total" alone for three."""
        if self.has_device:
            return {row[0]: [row[2], row[3], row[4], row[6]] for row in rows}
        return {row[0]: [row[2], 0, row[2], row[4]] for row in rows}


class Shown(NamedTuple):
    page: Path
    profile: Profile


def page_of(directory: Path, *traces: Path) -> Page:
    return Page(write_page(directory, *traces), [load_file(str(trace)) for trace in traces])


def kept_page(name: str, traces: Sequence[Path]) -> Page:
    """The page of traces, made once; anew when a trace, the reporter or the page's script has changed."""
    package = ROOT / "reporter" / "jmassif"
    made_of = [*traces, *(path for path in sorted(package.rglob("*")) if path.suffix != ".pyc" and path.is_file())]
    key = [(str(path), hashlib.sha256(path.read_bytes()).hexdigest()) for path in made_of]

    def make(directory: Path) -> None:
        write_page(directory, *traces)

    return Page(made_once(key, make, f"page-{name}") / "report.html", [load_file(str(trace)) for trace in traces])


def train(*options: str) -> Recording:
    """The example on the simulated board."""
    example = ROOT / "docs" / "examples" / "train.py"
    return recorded([PYTHON, example, "--device=sim"], options, env={"JMSIM_LIB": str(sim_build())}, timeout=300)


def owners(profile: Profile, composition: LiveBytesByAccount) -> Dict[str, List[int]]:
    """By owner: host and device bytes, both, and blocks."""
    rows = ledger(profile, composition).owners
    return {row.name: [row.usage.host_bytes, row.usage.device_bytes, row.bytes, row.usage.blocks] for row in rows}


def held(
    profile: Profile, composition: LiveBytesByAccount, wanted: Callable[[int], bool] = lambda account: True
) -> int:
    """Bytes that are in a sum."""
    return sum(
        n_bytes
        for account, (n_bytes, _) in composition.items()
        if side_of(profile.accounts[account].kind) and wanted(account)
    )


# ---- the call tree, as nested lists [name, now, before, children] ------------------------------

# As text: the driver does not hand on what is nested as deeply as a stack.
TREE = """(() => {
    const list = (node) => [node.name, node.now, node.before, node.children.map(list)];
    return JSON.stringify(list(document.querySelector('.flame').tree));
})()"""


def assert_adds_up(node: List[Any]) -> None:
    """What is in a branch is never more than the branch."""
    _, now, before, children = node
    assert sum(child[1] for child in children) <= now and sum(child[2] for child in children) <= before
    for child in children:
        assert_adds_up(child)


def find(node: List[Any], name: str) -> List[List[Any]]:
    """The outermost nodes of that name."""
    if node[0] == name:
        return [node]
    return [found for child in node[3] for found in find(child, name)]


def walk(node: List[Any]) -> Iterator[List[Any]]:
    yield node
    for child in node[3]:
        yield from walk(child)
