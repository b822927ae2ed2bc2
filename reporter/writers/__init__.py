# SPDX-License-Identifier: GPL-2.0-or-later
"""One module an output format. A writer turns a profile into lines of text and does nothing else."""

from typing import NamedTuple, Optional

BY = ("stack", "owner", "library", "kind")


class View(NamedTuple):
    """What the user asked to see."""

    selector: Optional[str]  # a snapshot's id or one of summary.SELECTORS; None: not asked
    threshold: float  # percent of the total below which places are folded
    by: str  # one of BY
    width: int  # of the graph, in columns
    height: Optional[int]  # of the graph, in rows; None: what fits
