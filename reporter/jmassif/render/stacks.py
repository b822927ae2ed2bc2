# SPDX-License-Identifier: GPL-2.0-or-later
"""The sections with call stacks: trees, indented by how deep they branch."""

from typing import Iterator, List, Optional, Tuple

from jmassif.analysis.calltree import ROOT, BottomUp, Shape
from jmassif.analysis.moments import Moment
from jmassif.attribution.names import Names
from jmassif.attribution.views import naming
from jmassif.model.records import Composition, side_of
from jmassif.model.run import Profile
from jmassif.render.layout import PYTHON, SHARE, Line, Lines, heading
from jmassif.render.view import View
from jmassif.units import count, percent


def _tags(tree: BottomUp, node: int, parent: int) -> str:
    """Kind and owner of all memory in a branch, where the branch around it is of several."""
    tags = []
    for of in (tree.kind, tree.owner):
        name = of(node)
        if name and name != tree.text(node) and (parent < 0 or not of(parent)):
            tags.append(name)
    return f" of {', '.join(tags)}" if tags else ""


def _tree_lines(tree: BottomUp, n_levels: int, threshold: float) -> Iterator[str]:
    """A paragraph a branch, indented by how deep it branches; the first `n_levels` levels are no frames.

    Frames that pass all their memory on stand below each other without numbers of their own.
    """
    (n_bytes, n_blocks), children = tree.totals(), tree.children()
    pending: List[Tuple[int, int, str]] = [(ROOT, 0, "")]
    while pending:
        node, depth, indent = pending.pop()
        label = tree.text(node)
        share = percent(n_bytes[node], n_bytes[ROOT])
        head = Line(f"{indent}{' ' * (7 - len(share))}", (share, SHARE), f" {n_bytes[node]:,} B")
        head = Line(head, f" in {count(n_blocks[node], 'block')}" if n_blocks[node] else "")
        if node in tree.places:
            yield Line(head, f", in {count(tree.places[node], 'place')} below {threshold:g} %")
            yield ""
            continue
        tags = _tags(tree, node, tree.parent[node])
        if depth <= n_levels:
            yield Line(head, f"{tags}: {label}" if label else tags)
        else:
            yield Line(head, tags)
            yield Line(f"{indent}{' ' * 8}", label)
        while depth > n_levels and len(children[node]) == 1 and children[node][0] not in tree.places:
            node = children[node][0]
            yield Line(f"{indent}{' ' * 8}", tree.text(node))
        yield ""
        inner = indent + ("  " if depth else "")
        pending.extend((child, depth + 1, inner) for child in reversed(children[node]))


def trees(profile: Profile, names: Names, chosen: Moment, view: View) -> Lines:
    def side(account: int) -> Optional[str]:
        return side_of(profile.accounts[account].kind)

    def part(wanted: Tuple[str, ...]) -> Composition:
        return {a: held for a, held in chosen.composition.items() if side(a) in wanted}

    def label(frame: int) -> str:
        text = names.frame(frame)
        fields = profile.frame(frame)
        return Line((text, PYTHON)) if fields.type == "p" and fields.file.endswith(".py") else text

    sides: List[Tuple[str, ...]] = [("device",), ("host",)] if profile.is_discrete else [("host", "device")]
    is_folded = view.fold == "internal"
    levels = (
        [] if view.by == "stack" else [naming(profile, names, view.by, view.fold != "none")]
    )  # what stands above the stacks
    shape = Shape(levels, label, names.folding, view.threshold, is_folded)
    lines: Lines = []
    for wanted in sides:
        composition = part(wanted)
        if not composition:
            continue
        what = f"{wanted[0]} memory" if len(wanted) == 1 else "all memory"
        by = f"by {view.by}, then call stack" if levels else "by call stack"
        folded = ", internal frames folded" if is_folded else ""
        lines += heading(f"{what.capitalize()} {by}, at {chosen.name}{folded}")
        tree = BottomUp(profile, composition, shape, "")
        lines += list(_tree_lines(tree, len(levels), view.threshold))[:-1]
    return lines
