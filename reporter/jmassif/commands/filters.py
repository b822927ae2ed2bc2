# SPDX-License-Identifier: GPL-2.0-or-later
"""The options --only and --except: a part of a run's memory."""

import argparse
from typing import List, Sequence

from jmassif.commands.common import Problem
from jmassif.model.profile import Profile
from jmassif.whose.filters import Filter, FilterError, kept, parse_filter


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
