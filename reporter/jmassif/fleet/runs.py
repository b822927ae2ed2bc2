# SPDX-License-Identifier: GPL-2.0-or-later
"""The runs of a fleet, by what is known of them: which are wanted, and into which groups they fall."""

import difflib
import fnmatch
import re
from typing import Any, Dict, List, NamedTuple, Sequence

from jmassif.fleet.database import Database
from jmassif.fleet.schema import RUN, FleetError
from jmassif.questions.facts import label, version_order
from jmassif.units import printable

_FIELDS = [name for name, _ in RUN.columns]
_MAX_CHOICES = 12
# Not worth a group.
_NUMBERS = ("run", "setup", "peak_total", "peak_host", "peak_device", "end_time")


class FleetRun(NamedTuple):
    number: int
    fields: Dict[str, Any]  # of the table run
    facts: Dict[str, str]  # of its setup; shared by many runs

    def value(self, key: str) -> str:
        """Of a column or a fact; "" where it is not known."""
        if key in self.fields and key not in _NUMBERS:
            value = self.fields[key]
            return "" if value is None else str(value)
        return self.facts.get(key, "")

    @property
    def is_complete(self) -> bool:
        return bool(self.fields["is_complete"])


class Condition(NamedTuple):
    key: str
    is_not: bool
    pattern: str

    def fits(self, run: FleetRun) -> bool:
        return fnmatch.fnmatchcase(run.value(self.key), self.pattern) != self.is_not


def condition(text: str) -> Condition:
    """ "board=*Nano*", "jetpack!=4.6.1". Raises FleetError."""
    found = re.fullmatch(r"([\w.+-]+)(!?=)(.*)", text, re.DOTALL)
    if not found:
        raise FleetError(f'"{printable(text)}" is no condition: write KEY=PATTERN or KEY!=PATTERN')
    key, sign, pattern = found.groups()
    return Condition(key, sign == "!=", pattern)


def read_runs(database: Database) -> List[FleetRun]:
    """All, in the order in which they began."""
    setups: Dict[int, Dict[str, str]] = {}
    for setup, key, value in database.rows("SELECT setup, key, value FROM setup"):
        setups.setdefault(setup, {})[key] = value
    rows = database.rows(f"SELECT {RUN.names} FROM run ORDER BY start_unix_ms, run")
    found = [dict(zip(_FIELDS, row)) for row in rows]
    return [FleetRun(fields["run"], fields, setups.get(fields["setup"], {})) for fields in found]


def known_keys(runs: Sequence[FleetRun]) -> List[str]:
    """What any of them tells."""
    facts = {key for run in {id(run.facts): run for run in runs}.values() for key, value in run.facts.items() if value}
    return sorted(facts | {name for name in _FIELDS if any(run.value(name) for run in runs)})


def check_key(runs: Sequence[FleetRun], key: str) -> None:
    """Raises FleetError if no run tells it."""
    if any(run.value(key) for run in runs):
        return
    known = known_keys(runs)
    near = difflib.get_close_matches(key, known, 5, 0.5) or known[:_MAX_CHOICES]
    raise FleetError(f'no run tells "{printable(key)}": there is {", ".join(map(printable, near)) or "no run at all"}')


def chosen(runs: Sequence[FleetRun], conditions: Sequence[Condition]) -> List[FleetRun]:
    for each in conditions:
        check_key(runs, each.key)
    return [run for run in runs if all(each.fits(run) for each in conditions)]


class RunGroup(NamedTuple):
    value: str
    label: str  # safe to show
    runs: List[FleetRun]


# Facts whose values say nothing without the fact's name.
_NAMED = ("jetpack", "l4t", "cuda", "cudnn", "cublas", "tensorrt", "pytorch", "python", "jmassif", "valgrind")


def grouped(runs: Sequence[FleetRun], key: str) -> List[RunGroup]:
    """A group for each value, in the order of versions. Raises FleetError."""
    check_key(runs, key)
    found: Dict[str, List[FleetRun]] = {}
    for run in runs:
        found.setdefault(run.value(key), []).append(run)
    name = f"{label(key)} " if key in _NAMED or key.startswith("package.") else ""
    values = sorted(found, key=lambda value: (value != "", version_order(value), value))
    return [RunGroup(value, printable(f"{name}{value}") if value else "unknown", found[value]) for value in values]
