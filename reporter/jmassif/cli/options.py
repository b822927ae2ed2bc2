# SPDX-License-Identifier: GPL-2.0-or-later
"""Options that several subcommands share, their values, and what they do to a run that was read."""

import argparse
import os
from itertools import islice
from shlex import quote
from typing import Any, Callable, Iterable, List, Set, Tuple, Type

from jmassif.attribution.filters import FilterError, Suppression, kept, parse_filter, parse_suppressions, suppress
from jmassif.cli import common
from jmassif.cli.common import Problem, warn
from jmassif.model.run import Profile
from jmassif.reader.input import STDIN, open_input, without_repeats
from jmassif.reader.tokens import MAGIC


# ---- values -----------------------------------------------------------------------------------------


def non_empty(text: str) -> str:
    """The type of an option with a value that may come from a script's empty variable."""
    if not text:
        raise argparse.ArgumentTypeError('"" is empty: give a value, or leave the option out')
    return text


def checked(parse: Callable[[str], Any], error_type: Type[Exception]) -> Callable[[str], Any]:
    """The type of an option that `parse` reads, or refuses with an error of that type."""

    def read(text: str) -> Any:
        try:
            return parse(text)
        except error_type as error:
            raise argparse.ArgumentTypeError(str(error))

    return read


def number(least: float, most: float, unit: str = "", is_whole: bool = False) -> Callable[[str], float]:
    """The type of an option with a number within bounds; the unit may be left out."""

    def read(text: str) -> float:
        try:
            value = float(text[: -len(unit)] if unit and text.endswith(unit) else text)
        except ValueError:
            value = float("nan")
        if not least <= value <= most or (is_whole and not text.isdecimal()):
            what = "whole number" if is_whole else "number"
            raise argparse.ArgumentTypeError(f'"{text}" is not a {what} from {least:,g}{unit} to {most:,g}{unit}')
        return int(value) if is_whole else value

    return read


def views(known: Tuple[str, ...]) -> Callable[[str], List[str]]:
    """The type of an option that takes several of the known views."""

    def read(text: str) -> List[str]:
        found = list(dict.fromkeys(text.split(",")))
        unknown = next((view for view in found if view not in known), None)
        if unknown is not None:
            raise argparse.ArgumentTypeError(f'unknown view "{unknown}"; there are {", ".join(known)}')
        return found

    return read


# ---- traces -----------------------------------------------------------------------------------------


def is_trace(path: str) -> bool:
    try:
        with open_input(path) as stream:
            return stream.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


_MOST_MANIFEST = 32  # lines of a trace that have its processes


def _processes(path: str) -> Tuple[Set[str], str]:
    """A trace's process and those it was forked from, as NUMBER.START, and the number of the process that started these."""
    processes, parent = set(), ""
    try:
        with open_input(path) as stream:
            lines = list(islice(stream, _MOST_MANIFEST))
    except OSError:  # it is gone, or cut off
        lines = []
    for line in lines:
        key, _, value = line.decode("ascii", "replace").rstrip()[2:].partition(" ")
        if key == "process":
            processes.add(value)
        elif key == "ppid":
            parent = parent or value
    return processes, parent


def _relatives(path: str, others: Iterable[str]) -> List[str]:
    """The others that are of the same run: processes that one forked or started."""
    known = {other: _processes(other) for other in others if is_trace(other)}
    family, (processes, parent) = {path}, _processes(path)
    parents = {parent}
    while True:
        numbers = {process.partition(".")[0] for process in processes}
        joined = [
            other
            for other, (own, parent) in known.items()
            if other not in family
            and (own & processes or parent in numbers or any(each.partition(".")[0] in parents for each in own))
        ]
        if not joined:
            return sorted(family - {path})
        family.update(joined)
        processes = processes.union(*(known[other][0] for other in joined))
        parents.update(known[other][1] for other in joined)


def _newest() -> str:
    """The trace of this directory that was written to last. Raises Problem."""
    import glob

    found = [path for path in glob.glob("jmassif.out.*") if os.path.isfile(path)]
    found.sort(key=os.path.getmtime, reverse=True)
    for path in found:
        if is_trace(path):
            kin = _relatives(path, found)
            also = f"; with the others of its run: {common.program} {' '.join(map(quote, [path, *kin]))}" if kin else ""
            warn(f"{path} is the newest trace here{also}")
            return path
    others = sorted(filter(is_trace, glob.glob("*.jmassif")), key=os.path.getmtime)
    named = f"name one, as in: {common.program} {quote(others[-1])}" if others else "name a trace"
    raise Problem(f"no jmassif.out.* in this directory: {named}, or record one with: jmassif PROGRAM")


def add_traces(
    parser: argparse.ArgumentParser, text: str = "traces of a run's processes; - is stdin [the newest]"
) -> None:
    parser.add_argument("traces", metavar="TRACE", nargs="*", help=text)


def traces_of(arguments: argparse.Namespace) -> List[str]:
    """The named traces, each once; without any the newest of this directory. Raises Problem."""
    return without_repeats(arguments.traces) if arguments.traces else [_newest()]


def shown_name(name: str) -> str:
    return "standard input" if name == STDIN else name


# ---- a part of the memory ---------------------------------------------------------------------------


def add_filters(parser: argparse.ArgumentParser) -> None:
    matching, others = "only stacks with a match in a name, file, owner, thread", "leave out such stacks"
    for name, text in (("--include", matching), ("--exclude", others)):
        regex = checked(parse_filter, FilterError)
        parser.add_argument(name, type=regex, action="append", default=[], metavar="REGEX", help=text)


def filter_runs(arguments: argparse.Namespace, names: List[str], runs: List[Profile], is_choice: bool) -> None:
    """Restrict a run to what --include and --exclude leave; `is_choice`: only as a choice that the page can undo. Raises Problem."""
    words = [f"--{name}={each.text}" for name in ("include", "exclude") for each in getattr(arguments, name)]
    if not words:
        return
    if len(runs) > 1:
        raise Problem(f"--include and --exclude are for one process: name one trace ({len(runs)} are named)")
    try:
        seen = kept(runs[0], arguments.include, arguments.exclude)
    except FilterError as error:
        raise Problem(f"{names[0]}: {error}")
    runs[0].chosen_by = " ".join(words)
    if is_choice:
        runs[0].chosen = seen
    else:
        runs[0].narrow(seen)


# ---- known leaks ------------------------------------------------------------------------------------


def add_suppressions(parser: argparse.ArgumentParser) -> None:
    text = "leave out the leaks that FILE lists, as leak:PATTERN"
    parser.add_argument("--suppressions", action="append", default=[], metavar="FILE", help=text)


class Suppressions:
    """Known leaks from files. Remembers which of them matched."""

    def __init__(self, files: List[str]) -> None:
        """Raises Problem."""
        self._all: List[Suppression] = []
        self._used: Set[int] = set()
        for name in files:
            try:
                with open(name, encoding="utf-8", errors="surrogateescape") as stream:
                    self._all += parse_suppressions(name, stream.read())
            except OSError as error:
                raise Problem(f"{name}: cannot be read: {error.strerror}")
            except FilterError as error:
                raise Problem(str(error))
        if files and not self._all:
            raise Problem(f"{files[0]}: has no suppressions of leaks in it")

    def apply(self, run: Profile) -> None:
        """Mark what is suppressed in a run."""
        if self._all:
            found = suppress(run, self._all)
            run.suppressed = bytearray(map(found.__contains__, range(len(run.accounts))))
            self._used |= set(found.values())

    def warn_unused(self) -> None:
        """Name those that matched nothing: the leak is fixed, or the pattern is wrong."""
        for place, each in enumerate(self._all):
            if place not in self._used:
                warn(f"{each.file}:{each.line}: {each.text} matched nothing")
