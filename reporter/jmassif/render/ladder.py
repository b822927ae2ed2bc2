# SPDX-License-Identifier: GPL-2.0-or-later
"""The ladder as text: rows in one unit that add up by eye, each with a bar where its bytes lie."""

from typing import Dict, List, NamedTuple, Optional

from jmassif.analysis.ladder import LESS, PLUS, Ladder, Rung
from jmassif.analysis.summary import Report
from jmassif.render.layout import SUM, Line, Lines, heading, paragraph
from jmassif.render.words import GROUP_NAMES
from jmassif.units import printable

_LABEL = 49
_NUMBER = 8
_BAR = 18
SIGNS = {LESS: "- ", PLUS: "+ "}
_PARTS_NAMED = 3

LABELS: Dict[str, str] = {
    "jtop": "jtop, tegrastats: RAM in use",
    "htop": "htop RES: resident memory",
    "highest": "htop RES, at its highest by then (VmHWM)",
    "nvidia-smi": "nvidia-smi: memory in use",
    "before": "in use before the program started",
    "profiler": "profiler",
    "others": "profiler, other programs, kernel",
    "unexplained": "freed since it was read, or unexplained",
    "files": "pages of mapped files, which it does not count",
    "unused": "free inside malloc",
    "unwritten": "allocated, never written",
    "program": "the program",
    "cache": "allocator cache: reserved, unused",
    "own": f"{GROUP_NAMES['yours']}, not tensors",
    "own-code": GROUP_NAMES["yours"],
    **{group: GROUP_NAMES[group] for group in ("runtime", "libraries", "other")},
}


class Unit(NamedTuple):
    name: str
    bytes: int

    def of(self, n_bytes: int) -> int:
        return (2 * n_bytes + self.bytes) // (2 * self.bytes)


def unit_for(n_bytes: int) -> Unit:
    return Unit("MiB", 1 << 20) if n_bytes >= 10 << 20 else Unit("KiB", 1 << 10)


def _unit_of(ladder: Ladder) -> Unit:
    return unit_for(max(rung.bytes for rung in ladder.rungs))


def _is_step(rung: Rung) -> bool:
    return rung.role in (LESS, PLUS)


def shown_numbers(ladder: Ladder, unit: Optional[Unit] = None) -> List[int]:
    """The rungs in a unit, by default the ladder's, rounded so that they add up: a part is the difference of the sums around it."""
    unit = unit or _unit_of(ladder)
    numbers = []
    level = 0
    for rung in ladder.rungs:
        after = level + rung.signed if _is_step(rung) else rung.bytes
        numbers.append(abs(unit.of(after) - unit.of(level)) if _is_step(rung) else unit.of(after))
        level = after
    return numbers


def _parts(rung: Rung, number: int, unit: Unit) -> str:
    """ ": context 58, module 7, other 4": the largest owners in the unit, and the rest of the rung's number."""
    if len(rung.parts) == 1:
        return f": {printable(rung.parts[0][0])}"
    room = _LABEL - len(f"- {LABELS[rung.key]}")
    for n_named in range(_PARTS_NAMED, 0, -1):
        named = [(printable(name), unit.of(n_bytes)) for name, n_bytes in rung.parts[:n_named] if unit.of(n_bytes)]
        rest = number - sum(part for _, part in named)
        if rest < 0:  # by rounding: the parts add up to the rung's number
            named[0] = named[0][0], named[0][1] + rest
        text = ": " + ", ".join(f"{name} {part:,}" for name, part in named + [("other", rest)] if part > 0)
        if named and len(text) <= room:
            return text
    return ""


def _label(is_pytorch: bool, rung: Rung, number: int, unit: Unit, is_top: bool) -> str:
    if rung.key == "allocated":
        tool = "torch.cuda.memory_allocated()" if is_pytorch else "its allocator's count of memory in use"
        what = "tensors" if len(rung.parts) == 1 else "tensors, workspaces"
        return f"= {tool}: {what}"
    about = " (about)" if rung.is_about else ""
    parts = _parts(rung, number, unit) if rung.key not in ("cache", "program") else ""
    sign = SIGNS.get(rung.role, "" if is_top else "= ")
    # The kernel's figures are read now and then: a program that grows fast holds more than it had then.
    is_late = rung.key in ("others", "unexplained") and rung.role == PLUS
    return f"{sign}{'allocated since that figure was read' if is_late else LABELS[rung.key]}{about}{parts}"


def _bar(begin: int, end: int, top: int) -> str:
    """From one number of bytes, counted from the top of the ladder, to another."""
    at, to = (round(_BAR * n_bytes / top) for n_bytes in (begin, end))
    return " " * min(at, _BAR - 1) + ("#" * (to - at) if to > at else ".")


def _rows(is_pytorch: bool, ladder: Ladder) -> Lines:
    top = max(rung.bytes for rung in ladder.rungs)
    level = 0
    lines: Lines = []
    for rung, row in zip(ladder.rungs, rows_of(is_pytorch, ladder).rows):
        after = rung.bytes if row.is_sum else level + rung.signed
        begin, end = (top - after, top) if row.is_sum else sorted((top - level, top - after))
        text = f"  {row.label:<{_LABEL}} {row.number:>{_NUMBER},}  {_bar(max(0, begin), end, top)}".rstrip()
        lines.append(Line((text, SUM)) if row.is_sum else text)
        level = after
    return lines


def footnote(is_pytorch: bool, ladder: Ladder) -> str:
    """On other figures that a reader may know; "" for none."""
    unit = _unit_of(ladder)
    texts = []
    if "resident" in ladder.beside and ladder.rungs[0].key == "jtop":
        text = f"htop RES shows {unit.of(ladder.beside['resident']):,}: no device memory"
        if ladder.beside.get("profiler"):
            text += f", and {unit.of(ladder.beside['profiler']):,} of it is the profiler"
        texts.append(text + ".")
    if "reserved" in ladder.beside and ladder.pool != "host":
        name = "torch.cuda.memory_reserved()" if is_pytorch else "Its allocator's count of reserved memory"
        texts.append(f"{name} shows {unit.of(ladder.beside['reserved']):,}.")
    return " ".join(texts)


class LadderRow(NamedTuple):
    label: str  # safe to show
    number: int  # in the unit
    is_sum: bool


class LadderRows(NamedTuple):
    """A ladder without bars, for a narrow place."""

    title: str
    rows: List[LadderRow]


def rows_of(is_pytorch: bool, ladder: Ladder) -> LadderRows:
    unit = _unit_of(ladder)
    rows = [
        LadderRow(_label(is_pytorch, rung, number, unit, rung is ladder.rungs[0]), number, not _is_step(rung))
        for rung, number in zip(ladder.rungs, shown_numbers(ladder))
    ]
    memory = f"{ladder.pool.upper()} " if ladder.pool else ""
    return LadderRows(f"{memory}LADDER ({unit.name})", rows)


TOOLS = {
    "jtop": "jtop's figure",
    "htop": "htop's figure",
    "highest": "htop's figure",
    "nvidia-smi": "nvidia-smi's figure",
    "program": "the program",
}


def has_steps(ladder: Ladder) -> bool:
    return any(map(_is_step, ladder.rungs))


def title_of(report: Report, ladder: Ladder) -> str:
    """ "From jtop's figure to torch's, at the peak, in MiB" """
    bottom = "your code"
    if ladder.rungs[-1].key == "allocated":
        bottom = "torch's" if report.run.is_pytorch else "its allocator's"
    memory = f"{ladder.pool.capitalize()} memory from" if ladder.pool else "From"
    return f"{memory} {TOOLS[ladder.rungs[0].key]} to {bottom}, at {report.moment.name}, in {_unit_of(ladder).name}"


def ladder_section(report: Report) -> Lines:
    """From another tool's figure to the framework's own; empty where there is no step between two figures."""
    lines: Lines = []
    is_pytorch = report.run.is_pytorch
    for ladder in filter(has_steps, report.ladders):
        lines += heading(title_of(report, ladder)) + _rows(is_pytorch, ladder)
        note = footnote(is_pytorch, ladder)
        lines += paragraph(note) if note else []
    return lines
