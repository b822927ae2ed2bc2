# SPDX-License-Identifier: GPL-2.0-or-later
"""The option --suppressions: files of known leaks, read before the traces, and what of them matched nothing, told after."""

import argparse
import re
from typing import List, Sequence, Set

from jmassif.attribution.filters import Filter, FilterError, kept, parse_filter
from jmassif.attribution.suppressions import Suppression, SuppressionError, parse_suppressions, suppress
from jmassif.cli.common import Problem, say
from jmassif.model.run import Profile
from jmassif.reader.overlay import Clock, OverlayError, parse
from jmassif.render.editor import EDITORS, Editor, EditorError, parse_editor


# ---- editors ----
# The option --editor: what opens a line of source from a page.


def _editor(text: str) -> Editor:
    try:
        return parse_editor(text)
    except EditorError as error:
        raise argparse.ArgumentTypeError(str(error))


def add_editor(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--editor",
        type=_editor,
        metavar="NAME|URL",
        help=f"lines on the page are links that open them in an editor: {', '.join(EDITORS)}, or an address with {{file}} and"
        " {line} in it",
    )


# ---- filters ----
# The options --only and --except: a part of a run's memory.


def _filter(text: str) -> Filter:
    try:
        return parse_filter(text)
    except FilterError as error:
        raise argparse.ArgumentTypeError(str(error))


def add_options(parser: argparse.ArgumentParser) -> None:
    option = parser.add_argument
    option(
        "--only",
        type=_filter,
        action="append",
        metavar="REGEX",
        help="show only stacks with a function, file, owner or thread in which REGEX finds something; function:REGEX,"
        " file:REGEX, owner:REGEX, thread:REGEX look there alone",
    )
    option("--except", type=_filter, action="append", metavar="REGEX", help="show all but those")


def _words(only: Sequence[Filter], but: Sequence[Filter]) -> List[str]:
    return [f"--only={each.text}" for each in only] + [f"--except={each.text}" for each in but]


def narrow(arguments: argparse.Namespace, names: List[str], profiles: List[Profile], has_all: bool = False) -> None:
    """As --only and --except ask; `has_all`: what is written has the rest too, and can show it. Raises Problem."""
    only, but = arguments.only or (), getattr(arguments, "except") or ()
    if not only and not but:
        return
    if len(profiles) > 1:
        raise Problem(f"--only and --except are for one process: name one trace ({len(profiles)} are named)")
    if arguments.snapshot == "all":
        raise Problem("--only and --except have no --snapshot=all")
    if arguments.segments is not None:
        raise Problem("--segments maps all of the device: leave --only and --except out")
    for name, profile in zip(names, profiles):
        try:
            seen = kept(profile, only, but)
            profile.chosen_by = " ".join(_words(only, but))
            if has_all:
                profile.chosen = seen
            else:
                profile.narrow(seen)
        except FilterError as error:
            raise Problem(f"{name}: {error}")


# ---- overlay ----
# The options with which a user hands in what another tool did show, and its log laid beside the runs.

_MOST_BYTES = 256 << 20


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e9:
        raise argparse.ArgumentTypeError(f'"{text}" is no number of seconds')
    return value


def _offset(text: str) -> float:
    zone = re.fullmatch(r"([+-])(\d\d):(\d\d)", text)
    if zone:
        seconds = int(zone.group(2)) * 3600 + int(zone.group(3)) * 60
        return float(-seconds if zone.group(1) == "+" else seconds)
    if not re.fullmatch(r"[+-]?\d{1,9}(\.\d{1,9})?", text):
        raise argparse.ArgumentTypeError(f'"{text}" is no zone such as +09:00, and no number of seconds')
    return float(text)


def add_overlay(parser: argparse.ArgumentParser) -> None:
    option = parser.add_argument
    option("--overlay", metavar="LOG", help="what tegrastats, jtop or nvidia-smi showed meanwhile, to see beside it")
    option(
        "--overlay-offset",
        type=_offset,
        metavar="ZONE",
        help="the zone of LOG's times (+09:00), or the seconds to add to make them UTC [this machine's, or what fits]",
    )
    option("--overlay-interval", type=_seconds, metavar="SECONDS", help="between LOG's lines, if without times [1]")
    option("--overlay-start", type=_seconds, metavar="SECONDS", help="likewise, from the run's start to its first [0]")


def lay(arguments: argparse.Namespace, profiles: List[Profile]) -> None:
    """Reads the log, if there is one, for each run."""
    name = arguments.overlay
    if name is None:
        for option in ("offset", "interval", "start"):
            if getattr(arguments, f"overlay_{option}") is not None:
                raise Problem(f"--overlay-{option} means nothing without --overlay")
        return
    try:
        with open(name, encoding="utf-8", errors="replace", newline="") as file:
            lines = file.read(_MOST_BYTES).splitlines()
    except OSError as error:
        raise Problem(f"{name}: {error.strerror}")
    interval, start = arguments.overlay_interval, arguments.overlay_start
    clock = Clock(arguments.overlay_offset, 1.0 if interval is None else interval, start or 0.0)
    for profile in profiles:
        try:
            profile.overlay = parse(lines, profile, clock)
        except OverlayError as error:
            raise Problem(f"{name}: {error}")


# ---- suppressions ----

_MOST_TOLD = 10


def add_suppressions(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--suppressions",
        action="append",
        default=[],
        metavar="FILE",
        help="do not count leaks that FILE has: lines leak:PATTERN as LeakSanitizer's",
    )


class Suppressions:
    """Those of all files that were named. Remembers which of them have matched."""

    def __init__(self, command: str, files: List[str]) -> None:
        """Raises Problem."""
        self._command = command
        self._all: List[Suppression] = []
        self._used: Set[int] = set()
        for name in files:
            try:
                with open(name, encoding="utf-8", errors="surrogateescape") as stream:
                    self._all += parse_suppressions(name, stream.read())
            except OSError as error:
                raise Problem(f"{name}: cannot be read: {error.strerror}")
            except SuppressionError as error:
                raise Problem(str(error))
        if files and not self._all:
            raise Problem(f"{files[0]}: has no suppressions of leaks in it")

    def apply(self, profile: Profile) -> None:
        """What is suppressed is no leak of the profile's from now on."""
        if self._all:
            found = suppress(profile, self._all)
            profile.suppressed = found.accounts
            self._used |= set(found.by.values())

    def tell_unused(self) -> None:
        """Those that matched nothing: the leak is mended, or the pattern is wrong."""
        unused = [each for place, each in enumerate(self._all) if place not in self._used]
        for each in unused[:_MOST_TOLD]:
            say(self._command, f"{each.file}:{each.line}: {each.text} matched nothing")
        if len(unused) > _MOST_TOLD:
            say(self._command, f"and {len(unused) - _MOST_TOLD} more suppressions matched nothing")
