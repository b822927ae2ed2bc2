# SPDX-License-Identifier: GPL-2.0-or-later
"""A difference as tables: in text for a terminal, or in Markdown for a merge request."""

import os
import re
from typing import Any, Dict, Iterator, List, NamedTuple, Sequence, Tuple, Union

from jmassif.analysis.compare import MORE_THAN_ALL, POOLS, SCOPE, TWICE, Column, Difference, DifferenceRow
from jmassif.analysis.compare import Finding, Moved, View
from jmassif.analysis.ladder import Ladder
from jmassif.render.ladder import LABELS, SIGNS, TOOLS, shown_numbers, unit_for
from jmassif.render.layout import Column as TableColumn, Table, cut, heading, paragraph
from jmassif.units import count, growth, printable, size

_MAX_NAME = 60
_MAX_HEAD = 16
_MAX_FACT = 60
_MAX_FILES = 3


class Section(NamedTuple):
    title: str
    heads: List[str]  # of the columns after the first, which holds names
    rows: List[List[str]]  # the name, and a cell a column; the last row is the total


def _heads(difference: Difference) -> List[str]:
    return [cut(printable(column.label), _MAX_HEAD) for column in difference.columns]


# From so many times as much on a change is a factor.
_FACTOR = 2


def change_of(before: int, now: int) -> str:
    """ "+12 %", "2.4 x", "new", "gone", or nothing to speak of. What calls have freed has no percentage."""
    if not before or not now:
        return "new" if now else "gone" if before else ""
    if before < 0:
        return ""
    if now >= _FACTOR * before:
        return f"{now / before:.1f} x"
    text = f"{100 * (now - before) / before:+.0f} %"
    return "" if text in ("+0 %", "-0 %") else text


# ---- sentences -----------------------------------------------------------------------------------

_STEPS: Dict[str, str] = {
    "runtime": "The runtime",
    "libraries": "Libraries",
    "cache": "The allocator cache",
    "other": "Owners without a group",
    "own": "Host data and code",
    "own-code": "Your code",
    "allocated": "Tensors",
}
_NOISE = {
    None: "One run per side: noise is unknown. Compare repeated runs with --vs.",
    True: "The difference is larger than run-to-run noise.",
    False: "The difference is within run-to-run noise.",
}


def _moved(found: Moved) -> str:
    where = f"at {found.label}" if found.is_line else f"in {found.label}"
    return f"{where}: {growth(found.change)} ({size(found.before)} → {size(found.now)})"


def _line(finding: Finding) -> List[str]:
    most, against = finding.most, finding.against
    if most is None:
        return []
    change = finding.now - finding.before
    if abs(most.change) <= MORE_THAN_ALL * abs(change):
        return [f"Most of that is {_moved(most)}."]
    words = ("grew", "shrank")[:: 1 if change > 0 else -1]
    rest = f", and {words[1]} most {_moved(against)}" if against else ""
    return [f"It {words[0]} most {_moved(most)}{rest}."]


def sentences(difference: Difference, finding: Finding) -> List[str]:
    """Safe to show. The first is the verdict; the others say why, and whether it may be noise."""
    old, new = (printable(difference.columns[number].label) for number in (0, -1))
    before, now = finding.before, finding.now
    # Memory of the host has no name where there is no other.
    is_alone = finding.pool == "bytes" or (finding.pool == "host" and len(difference.findings) == 1)
    memory = "" if is_alone else f" of {finding.pool} memory"
    if before == now:
        return [f"{new} holds as much{memory} as {old} at {difference.moment}: {size(before)}."]
    share = f", {change_of(before, now)}" if before and change_of(before, now) else ""
    verdict = f"{new} holds {size(abs(now - before))}{memory} {'more' if now > before else 'less'} than {old}"
    found = [f"{verdict} at {difference.moment}: {size(before)} → {size(now)}{share}."]
    step = finding.step
    if step:
        found.append(f"{_STEPS[step.key]} {'grew' if step.change > 0 else 'shrank'} by {size(abs(step.change))}.")
    found += _line(finding)
    if finding.largest:
        named = ", ".join(f"{printable(name)} {growth(change)}" for name, change in finding.largest)
        found.append(f"Largest changes by {finding.by.replace('-', ' ')}: {named}.")
    return found + [_NOISE[finding.is_beyond_noise]]


# ---- tables --------------------------------------------------------------------------------------


Value = Union[int, str]


class FigureTable(NamedTuple):
    """A view of one memory space. The last column is compared with the first."""

    by: str
    title: str
    # Of the columns after the names, and what is in them: "bytes", "change", "signed" or "" (text).
    heads: List[Tuple[str, str]]
    rows: List[Tuple[str, List[Value]]]  # the last one is the total


def _figures(difference: Difference, view: View, pool: str, row: DifferenceRow) -> List[Tuple[str, str, Value]]:
    """Of a row: head and kind of each column, and what is in it."""
    pick, last = POOLS[pool], row.cells[-1]
    found: List[Tuple[str, str, Value]] = [
        (column.label, "bytes", pick(cell.figures)) for column, cell in zip(difference.columns, row.cells)
    ]
    if len(row.cells) == 1:
        return found
    share = "" if row is view.rounding else change_of(pick(row.cells[0].figures), pick(last.figures))
    found += [("change", "change", pick(last.change)), ("%", "", share)]
    if difference.has_repeats:
        found.append(("noise", "", "" if last.is_beyond_noise else "within"))
    if pool == "bytes":  # counts of either memory space are not known
        spaces = {f"{space} change": POOLS[space] for space in ("host", "device")}
        if all(any(of(cell.figures) for cell in view.total.cells) for of in spaces.values()):
            found += [(head, "change", of(last.change)) for head, of in spaces.items()]
        found.append((view.counts, "signed", last.change.blocks))
    return found


def figure_tables(difference: Difference) -> Iterator[FigureTable]:
    for view in (view for view in difference.views if view.rows or view.by not in (SCOPE, TWICE)):
        for pool in _pools(difference, view):
            is_in = POOLS[pool]
            rows = [(_name(r), r) for r in view.rows if pool == "bytes" or any(is_in(cell.figures) for cell in r.cells)]
            if view.other:
                rows.append((f"{count(view.n_other, 'other')}, each under {size(difference.min_bytes)}", view.other))
            if view.rounding:
                rows.append(("rounding of medians", view.rounding))
            rows.append(("total", view.total))
            figures = [_figures(difference, view, pool, row) for _, row in rows]
            heads = [(head, kind) for head, kind, _ in figures[-1]]
            values = [(name, [each[2] for each in row]) for (name, _), row in zip(rows, figures)]
            yield FigureTable(view.by, _title(difference, view, pool), heads, values)


def texts(heads: Sequence[Tuple[str, str]], values: Sequence[Any]) -> Iterator[str]:
    for (_, kind), value in zip(heads, values):
        if isinstance(value, str):
            yield value
        elif kind == "signed":
            yield f"{value:+,}".replace("+0", "")
        elif kind in ("change", "growth"):
            yield growth(value)
        elif kind == "number":
            yield f"{value:,}"
        else:
            yield size(value)


def _pools(difference: Difference, view: View) -> List[str]:
    """Both memory spaces of unified boards in one sum; each by itself with a discrete GPU."""
    has_device = any(cell.figures.device_bytes for cell in view.total.cells)
    return ["host", "device"] if difference.is_discrete and has_device else ["bytes"]


def _name(row: DifferenceRow) -> str:
    return "  " * len(row.key.inside) + row.key.name + (": further calls, not counted" if row.key.is_listed else "")


def _title(difference: Difference, view: View, pool: str) -> str:
    by = "calling library" if view.by == "library" else view.by.replace("-", " ")
    title = {SCOPE: "Cost by call", TWICE: f"Held twice, at {difference.moment}"}.get(
        view.by, f"By {by}, at {difference.moment}"
    )
    return title if pool == "bytes" else f"{title}: {pool} memory"


def ladder_table(difference: Difference, ladders: List[Ladder]) -> Section:
    """Rows that add up in every column, the changes too."""
    most = max(abs(rung.bytes) for ladder in ladders for rung in ladder.rungs)
    unit = unit_for(most)
    first, is_compared = ladders[0], len(ladders) > 1
    bottom = "your code"
    if first.rungs[-1].key == "allocated":
        is_torch = any(run.facts.get("pytorch") for column in difference.columns for run in column.runs)
        bottom = "torch's" if is_torch else "its allocator's"
    rows: List[List[str]] = []
    for rung, *numbers in zip(first.rungs, *(shown_numbers(ladder, unit) for ladder in ladders)):
        name = f"{bottom} count of memory in use" if rung.key == "allocated" else LABELS[rung.key]
        about = " (about)" if rung.is_about else ""
        change = numbers[-1] - numbers[0]
        changes = [f"{change:+,}" if change else "0"] if is_compared else []
        sign = SIGNS.get(rung.role, "= " if rows else "")
        rows.append([f"{sign}{name}{about}", *(f"{number:,}" for number in numbers), *changes])
    memory = f"{first.pool.capitalize()} memory from" if first.pool else "From"
    title = f"{memory} {TOOLS[first.rungs[0].key]} to {bottom}, at {difference.moment}, in {unit.name}"
    return Section(title, _heads(difference) + (["change"] if is_compared else []), rows)


def _sections(difference: Difference) -> Iterator[Section]:
    for ladder in difference.ladders:
        yield ladder_table(difference, ladder)
    for table in figure_tables(difference):
        heads = _heads(difference) + [head for head, _ in table.heads[len(difference.columns) :]]
        rows = [[cut(name, _MAX_NAME), *texts(table.heads, values)] for name, values in table.rows]
        yield Section(table.title, heads, rows)


def _files(column: Column) -> str:
    names = [run.name if run.is_complete else f"{run.name} (truncated)" for run in column.runs]
    more = f" and {count(len(names) - _MAX_FILES, 'more run')}" if len(names) > _MAX_FILES else ""
    return ", ".join(names[:_MAX_FILES]) + more


def _without_beginning(values: List[str]) -> List[str]:
    """Values that are too long, from the word on in which they begin to differ."""
    if max(map(len, values)) <= _MAX_FACT:
        return values
    same = os.path.commonprefix(values)
    begin = same.rfind(" ") + 1
    return [cut(f"… {value[begin:]}" if begin else value, _MAX_FACT) for value in values]


def _facts(difference: Difference) -> List[List[str]]:
    """The compared traces, and differences in software and machine: names and texts."""
    found = [[column.label, _files(column)] for column in difference.columns]
    for fact in (fact for fact in difference.facts if not fact.is_redundant):
        found.append([fact.label, " → ".join(value or "?" for value in _without_beginning(fact.values))])
    return [[printable(cut(name, _MAX_NAME)), printable(text)] for name, text in found]


def notes(difference: Difference) -> List[str]:
    notes = []
    if difference.has_repeats:
        notes.append("Figures of repeated runs are medians, those of the ladder of the run with the median total.")
        notes.append('Noise: "within" where runs of both columns overlap.')
    if any(row.key.inside for view in difference.views for row in view.rows):
        notes.append("Nested calls are included in their callers.")
    if len(difference.columns) > 2:
        notes.append("Change is from the first column to the last.")
    return notes


def text_table(rows: List[List[str]], align: str = ">") -> Iterator[str]:
    """The first row has the heads."""
    first, *others = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    table = Table(TableColumn("", first, align="<"), *(TableColumn("", max(w, 8), align=align, gap=2) for w in others))
    for row in rows:
        yield table.row(*row).rstrip()


def write_text(difference: Difference) -> Iterator[str]:
    """For a terminal."""
    for finding in difference.findings:
        yield from paragraph(" ".join(sentences(difference, finding))) + [""]
    facts = _facts(difference)
    width = max(len(name) for name, _ in facts) + 2
    for name, text in facts:
        yield f"{name + ':':<{width}}{text}"
    for note in notes(difference):
        yield from [""] + paragraph(note)
    for section in _sections(difference):
        yield from heading(section.title)
        yield from text_table([["", *section.heads], *section.rows])


# Active in Markdown, or in HTML inside of it.
_ACTIVE = re.compile(r"[\\`*_\[\]<>#!|~&@$]|:(?=//)")


def escaped(text: str) -> str:
    return _ACTIVE.sub(lambda found: f"&#{ord(found.group())};", text)


def markdown_table(
    heads: List[str], rows: List[List[str]], align: str = "--:", has_total: bool = False
) -> Iterator[str]:
    """A pipe table. The last row is bold if it `has_total`."""
    yield f"| | {' | '.join(map(escaped, heads[1:]))} |"
    yield "|:--|" + f"{align}|" * (len(heads) - 1)
    for row in rows:
        name = row[0].lstrip(" ")
        cells = ["&nbsp;" * (len(row[0]) - len(name)) + escaped(name), *map(escaped, row[1:])]
        if has_total and row is rows[-1]:
            cells = [f"**{cell}**" if cell else "" for cell in cells]
        yield f"| {' | '.join(cells)} |"


def write_markdown(difference: Difference) -> Iterator[str]:
    """Pipe tables, as GitHub and GitLab have them."""
    for finding in difference.findings:
        yield from [escaped(" ".join(sentences(difference, finding))), ""]
    yield "| | |"
    yield "|:--|:--|"
    for name, text in _facts(difference):
        yield f"| {escaped(name)} | {escaped(text)} |"
    for note in notes(difference):
        yield from ["", note]
    for section in _sections(difference):
        yield from ["", f"### {escaped(section.title)}", ""]
        yield from markdown_table(["", *section.heads], section.rows, has_total=True)
