# SPDX-License-Identifier: GPL-2.0-or-later
"""What the parts of a line are there for. Writers mark it where they write; how a role looks is for those who show the report."""

from typing import List, Tuple, Union

HEADING = "heading"
LABEL = "label"  # what a fact at the report's head is called
WARNING = "warning"
SUM = "sum"  # a row that others add up to
SHARE = "share"
HOST = "host"
DEVICE = "device"
PYTHON = "python"  # a line of Python in a call stack
ROLES = (HEADING, LABEL, WARNING, SUM, SHARE, HOST, DEVICE, PYTHON)
# Of a sentence, which may go on in the next line; it looks like any other text.
WORDS = "words"
# A command to be run as it stands: it is never cut.
COMMAND = "command"

Part = Tuple[str, str]  # text, and one of ROLES or ""


class Line(str):
    """A line with parts that have roles; for whoever does not ask for them, a string."""

    parts: Tuple[Part, ...]

    def __new__(cls, *parts: Union[str, Part]) -> "Line":
        """A string has no role, and another Line brings its own."""
        pairs: List[Part] = []
        for part in parts:
            if isinstance(part, Line):
                pairs += part.parts
            else:
                pairs.append((part, "") if isinstance(part, str) else part)
        line = super().__new__(cls, "".join(text for text, _ in pairs))
        line.parts = tuple(pairs)
        return line
