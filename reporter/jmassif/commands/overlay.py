# SPDX-License-Identifier: GPL-2.0-or-later
"""The options with which a user hands in what another tool did show, and its log laid beside the runs."""

import argparse
import re
from typing import List

from jmassif.commands.common import Problem
from jmassif.model.profile import Profile
from jmassif.trace.overlay import Clock, OverlayError, parse

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


def add_options(parser: argparse.ArgumentParser) -> None:
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
