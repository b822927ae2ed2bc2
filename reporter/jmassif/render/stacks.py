# SPDX-License-Identifier: GPL-2.0-or-later
"""The sections with call stacks: trees, indented by how deep they branch."""

from typing import Iterator, List, Optional, Tuple

from jmassif.analysis.calltree import Node, Shape, build_site_tree
from jmassif.analysis.moments import Moment
from jmassif.attribution.names import Names
from jmassif.attribution.views import naming
from jmassif.model.records import Composition, side_of
from jmassif.model.run import Profile
from jmassif.render.layout import PYTHON, SHARE, Line, Lines, heading
from jmassif.render.view import View
from jmassif.units import count, percent


def _tags(node: Node, parent: Optional[Node]) -> str:
    """What is known of all memory in a branch and was not yet known of the branch around it."""
    tags = []
    if node.kind and node.kind != node.label and not (parent and parent.kind):
        tags.append(node.kind)
    if node.owner and node.owner != node.label and not (parent and parent.owner):
        tags.append(node.owner)
    return f" of {', '.join(tags)}" if tags else ""


def _tree_lines(root: Node, n_levels: int, threshold: float) -> Iterator[str]:
    """A paragraph a branch, indented by how deep it branches; the first `n_levels` levels are no frames.

    Frames that pass all their memory on stand below each other without numbers of their own.
    """
    pending: List[Tuple[Node, int, str, Optional[Node]]] = [(root, 0, "", None)]
    while pending:
        node, depth, indent, parent = pending.pop()
        share = percent(node.bytes, root.bytes)
        blocks = f" in {count(node.blocks, 'block')}" if node.blocks else ""

        def head(rest: str) -> Line:
            before = f"{indent}{share:>7}"
            return Line(before[: -len(share)], (share, SHARE), f" {node.bytes:,} B{blocks}{rest}")

        if node.places:
            yield head(f", in {count(node.places, 'place')} below {threshold:g} %")
            yield ""
            continue
        if depth <= n_levels:
            label = f": {node.label}" if node.label else ""
            yield head(f"{_tags(node, parent)}{label}")
        else:
            yield head(_tags(node, parent))
            yield Line(f"{indent}{' ' * 8}", node.label)
        while depth > n_levels and len(node.children) == 1 and not node.children[0].places:
            node = node.children[0]
            yield Line(f"{indent}{' ' * 8}", node.label)
        yield ""
        inner = indent + ("  " if depth else "")
        pending.extend((child, depth + 1, inner, node) for child in reversed(node.children))


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
        root = build_site_tree(profile, composition, shape, "")
        lines += list(_tree_lines(root, len(levels), view.threshold))[:-1]
    return lines
