# SPDX-License-Identifier: GPL-2.0-or-later
"""A recorded trace with other figures: another board's run of the same program, in a moment instead of under Valgrind.

The bytes of each account are multiplied by a factor, at every snapshot and peak alike, and something may be added to one of
them; totals are added up anew. So the trace stays one that a recorder could have written, and what it says is known.
"""

from typing import Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from jmassif.model.records import DEVICE_KINDS, HOST_KINDS
from tests.records import apart

_Row = Tuple[int, int, int, int, str]  # account, live bytes, live blocks, all bytes, and the rest as it stands


class _Peak(NamedTuple):
    head: str
    rows: List[Tuple[int, int, int]]  # account, live bytes, live blocks


class _Group(NamedTuple):
    head: str
    rows: List[_Row]
    between: List[str]
    peaks: List[_Peak]
    end: str


class _Totals(NamedTuple):
    time: str
    host: int
    device: int
    maximum: int


class _Scope(NamedTuple):
    head: str
    name: str
    growths: List[str]


class _Block(NamedTuple):
    head: str
    bytes: int
    account: int


class Figures(NamedTuple):
    """What another run has otherwise."""

    manifest: Mapping[str, str]
    factor_of: Callable[[str], float]  # by owner
    extra_of: Mapping[int, int]  # by account: bytes more, as long as it has blocks
    extra_of_scope: Mapping[str, int]  # by name: bytes more of device memory


class Recorded:
    """A trace, taken to pieces."""

    def __init__(self, text: str) -> None:
        self.owners: List[str] = [""]  # by account
        self.kinds: List[str] = [""]
        self.held: Dict[int, int] = {}  # by account: live bytes at the total peak
        self._manifest: Dict[str, str] = {}
        self._strings: Dict[str, str] = {}
        self._parts: List[object] = []
        self._group: Optional[_Group] = None
        self._live: Dict[int, int] = {}
        self._types: Dict[str, List[str]] = {}  # kind and owner, by type of account
        first, *lines = apart(text).splitlines()
        self._first = first
        for line in lines:
            self._line(line)

    def _line(self, line: str) -> None:
        letter, _, rest = line.partition(" ")
        if self._group is not None:
            self._in_group(letter, line)
        elif letter == "m":
            key, _, value = rest.partition(" ")
            self._manifest[key] = value
        elif letter == "S":
            self._group = _Group(" ".join(line.split(" ")[:4]), [], [], [], "")
        elif letter == "t":
            time, *numbers = rest.split(" ")
            self._parts.append(_Totals(time, *map(int, numbers)))
        elif letter == "+":
            time, address, size, account = rest.split(" ")
            self._parts.append(_Block(f"+ {time} {address}", int(size), int(account)))
        elif letter in ("x", "X"):
            words = line.split(" ")
            n = 8 if letter == "x" else 4
            name = self._strings[words[7] if letter == "x" else words[1]]
            self._parts.append(_Scope(" ".join(words[:n]), name, words[n:]))
        else:
            if letter == "K":
                type_, *self._types[type_] = rest.split(" ")
            elif letter == "a":
                kind, owner = self._types[rest.split(" ")[1]]
                self.kinds.append(kind)
                self.owners.append(owner)
            elif letter == "s":
                id_, _, string = rest.partition(" ")
                self._strings[id_] = string
            self._text(line)

    def _text(self, line: str) -> None:
        if not self._parts or not isinstance(self._parts[-1], list):
            self._parts.append([])
        self._parts[-1].append(line)  # type: ignore[attr-defined]

    def _in_group(self, letter: str, line: str) -> None:
        group = self._group
        assert group
        words = line.split(" ")
        if letter == "c":
            account, live, blocks, everything = map(int, words[1:5])
            group.rows.append((account, live, blocks, everything, " ".join(words[5:])))
            self._live[account] = live
        elif letter == "P":
            group.peaks.append(_Peak(" ".join(words[:3]), []))
            if words[1] == "total":
                self.held = dict(self._live)
        elif letter == "d":
            group.peaks[-1].rows.append((int(words[1]), int(words[2]), int(words[3])))
            if group.peaks[-1].head.startswith("P total "):
                self.held[int(words[1])] = int(words[2])
        elif letter == "E":
            self._parts.append(group._replace(end=line))
            self._group = None
        else:
            group.between.append(line)

    def largest(self, owner: str) -> int:
        """The account of an owner that holds most at the peak."""
        found = [account for account in self.held if self.owners[account] == owner]
        return max(found, key=lambda account: self.held[account])

    def with_figures(self, figures: Figures) -> str:
        """The trace that this would have been."""
        lines = [self._first]
        lines += [f"m {key} {value}" for key, value in {**self._manifest, **figures.manifest}.items()]
        _Writer(self, figures, lines).write(self._parts)
        return "\n".join(lines) + "\n"


class _Writer:
    def __init__(self, recorded: Recorded, figures: Figures, lines: List[str]) -> None:
        self.figures = figures
        self.lines = lines
        self.factors = [figures.factor_of(owner) if owner else 1.0 for owner in recorded.owners]
        self.extras = [figures.extra_of.get(account, 0) for account in range(len(recorded.owners))]
        self.sides = [0 if kind in HOST_KINDS else 1 if kind in DEVICE_KINDS else 2 for kind in recorded.kinds]
        self.live = [0] * len(recorded.owners)
        self.sums = [0, 0, 0]
        self.recorded_sums = [0, 0]
        self.recorded_live = [0] * len(recorded.owners)

    def write(self, parts: Sequence[object]) -> None:
        for part in parts:
            if isinstance(part, list):
                self.lines += part
            elif isinstance(part, _Group):
                self._group(part)
            elif isinstance(part, _Totals):
                self._totals(part)
            elif isinstance(part, _Block):
                size = max(1, int(part.bytes * self.factors[part.account]) + self.extras[part.account])
                self.lines.append(f"{part.head} {size} {part.account}")
            elif isinstance(part, _Scope):
                self._scope(part)

    def _totals(self, part: _Totals) -> None:
        """Between snapshots nobody knows who holds what: in the proportion of the one before."""
        host, device = (
            now * new // old if old else now
            for now, new, old in zip((part.host, part.device), self.sums, self.recorded_sums)
        )
        grown = max(0, part.maximum - part.host - part.device)
        self.lines.append(f"t {part.time} {host} {device} {host + device + grown}")

    def _scope(self, part: _Scope) -> None:
        name = part.name
        owner = "cudnn" if name.startswith("cudnn") else "cublas" if name.startswith("cublas") else "context"
        factor = self.figures.factor_of(owner)
        extra = self.figures.extra_of_scope.get(name, 0)
        words = list(part.growths)
        for at in range(1, len(words), 3):
            words[at] = str(int(int(words[at]) * factor) + (extra if words[at - 1] in DEVICE_KINDS else 0))
        self.lines.append(" ".join([part.head] + words))

    def _group(self, group: _Group) -> None:
        factors, extras, sides, live, sums = self.factors, self.extras, self.sides, self.live, self.sums
        rows = []
        for account, n_bytes, blocks, everything, rest in group.rows:
            factor = factors[account]
            now = int(n_bytes * factor) + (extras[account] if blocks else 0)
            sums[sides[account]] += now - live[account]
            live[account] = now
            everything = int(everything * factor) + extras[account]
            rows.append(f"c {account} {now} {blocks} {everything} {rest}")
            if sides[account] < 2:
                self.recorded_sums[sides[account]] += n_bytes - self.recorded_live[account]
                self.recorded_live[account] = n_bytes
        self.lines.append(f"{group.head} {sums[0]} {sums[1]}")
        self.lines += rows
        self.lines += group.between
        for peak in group.peaks:
            at_peak = list(sums)
            rows = []
            for account, n_bytes, blocks in peak.rows:
                now = int(n_bytes * factors[account]) + (extras[account] if blocks else 0)
                at_peak[sides[account]] += now - live[account]
                rows.append(f"d {account} {now} {blocks}")
            self.lines.append(f"{peak.head} {at_peak[0]} {at_peak[1]}")
            self.lines += rows
        self.lines.append(group.end)
