# SPDX-License-Identifier: GPL-2.0-or-later
"""The user's choice of what to see, and how a writer says that it cannot show it."""

import sys
from typing import NamedTuple, Optional, Sequence, Tuple

from jmassif.attribution.views import LINE_VIEWS


BY = ("stack", "owner", "library", "kind", "role", "part", "thread") + tuple(LINE_VIEWS)
FOLDS = ("internal", "none")
_BRIEF_ROWS = 4


class View(NamedTuple):
    """The user's choice of what to see."""

    selector: Optional[str]  # a snapshot's id or one of moments.SELECTORS; None: not asked
    threshold: float  # percent of the total below which places are folded
    by: str  # one of BY
    width: int  # of the graph, in columns
    fold: Optional[str] = None  # one of FOLDS; None: internal frames are folded in the views by line, and not in trees
    # Show the text of Python lines, also of files below these directories, whatever is there; None: show none.
    source: Optional[Sequence[str]] = ()
    value: str = "live-bytes"  # of a stack; one of aggregate.VALUES
    segments: Optional[str] = None  # map device memory: at the failed allocation of this number, or ""; None: do not
    with_pages: bool = False  # count resident pages where massif would not
    is_brief: bool = False  # the text report's sections are cut short, so that it is two screens
    with_stacks: bool = True  # the text report ends in call stacks
    columns: int = 0  # as wide as a line may be; 0: as wide as it is
    range: Optional[Tuple[str, str]] = None  # from one moment to another, each like `selector`; None: not asked
    held_twice: bool = False  # show what is held twice in place of the report
    file: str = ""  # what the trace is called, for the commands that a report names

    @property
    def hint(self) -> str:
        """How to have the rows that a short section leaves out."""
        return ": --all" if self.is_brief else ""

    def most(self, rows: int = sys.maxsize) -> int:
        """The rows that are shown of a section that has at most so many in full."""
        return min(_BRIEF_ROWS, rows) if self.is_brief else rows


class FormatError(Exception):
    """The format cannot hold this profile, or its file cannot be written. The message is one line."""
