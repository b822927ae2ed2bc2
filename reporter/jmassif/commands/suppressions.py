# SPDX-License-Identifier: GPL-2.0-or-later
"""The option --suppressions: files of known leaks, read before the traces, and what of them matched nothing, told after."""

import argparse
from typing import List, Set

from jmassif.commands.common import Problem, say
from jmassif.model.profile import Profile
from jmassif.whose.suppressions import Suppression, SuppressionError, parse_suppressions, suppress

_MOST_TOLD = 10


def add_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--suppressions",
        action="append",
        default=[],
        metavar="FILE",
        help="do not count leaks that FILE has: lines leak:PATTERN as LeakSanitizer's, or Valgrind's blocks",
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
            say(self._command, f"{each.file}:{each.line}: {each.name} matched nothing")
        if len(unused) > _MOST_TOLD:
            say(self._command, f"and {len(unused) - _MOST_TOLD} more suppressions matched nothing")
