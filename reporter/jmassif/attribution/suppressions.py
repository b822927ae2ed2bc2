# SPDX-License-Identifier: GPL-2.0-or-later
"""Known leaks, which are not reported again: lines `leak:PATTERN` as LeakSanitizer takes them.

PATTERN is found anywhere in the function, the source file, FILE:LINE or the object file of any frame of a stack; `*` stands for
anything, `^` and `$` hold it to the ends of the name. `#` begins a comment.
"""

from typing import Dict, List, NamedTuple, Sequence

from jmassif.model.run import Profile

_LONGEST = 1000


class SuppressionError(Exception):
    """The file has another line in it. The message is one line, with the line of the file."""


class Suppression(NamedTuple):
    file: str
    line: int
    text: str  # "leak:foo"

    def matches(self, name: str) -> bool:
        """Part by part, each as early as it is found: linear in the length of the name for any pattern."""
        pattern = self.text[len("leak:") :]
        is_begin, is_end = pattern.startswith("^"), pattern.endswith("$")
        first, *others = pattern[is_begin : len(pattern) - is_end].split("*")
        if is_end and not others:
            return name.endswith(first) and (not is_begin or name == first)
        last = others.pop() if is_end else ""
        at = name.find(first)
        if at < 0 or (is_begin and at):
            return False
        at += len(first)
        for part in others:
            found = name.find(part, at)
            if found < 0:
                return False
            at = found + len(part)
        return len(name) - len(last) >= at and name.endswith(last)


def parse_suppressions(file: str, text: str) -> List[Suppression]:
    """From the text of a file of that name. Raises SuppressionError."""
    found: List[Suppression] = []
    for number, line in enumerate(text.split("\n"), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        if not line.startswith("leak:"):
            raise SuppressionError(f"{file}:{number}: expected leak:PATTERN")
        pattern = line[len("leak:") :]
        if not pattern.strip("*^$") or len(pattern) > _LONGEST:
            raise SuppressionError(f"{file}:{number}: leak: needs a pattern that is not everything")
        found.append(Suppression(file, number, line))
    return found


class Suppressed(NamedTuple):
    """The effect of suppressions on a run."""

    accounts: bytearray  # by account: 1 if it is suppressed
    by: Dict[int, int]  # by account: the place in the list of the first that suppresses it


def suppress(profile: Profile, suppressions: Sequence[Suppression]) -> Suppressed:
    """Accounts with a stack that any of them matches."""
    by_frame: Dict[int, int] = {}  # the first that matches
    for id_ in profile.frames:
        frame = profile.frame(id_)
        named = (frame.function, frame.file, frame.object, f"{frame.file}:{frame.line}" if frame.line else "")
        names = [] if frame.type == "t" else [name for name in named if name]
        for place, each in enumerate(suppressions):
            if any(map(each.matches, names)):
                by_frame[id_] = place
                break
    nothing = len(suppressions)
    by_node = [nothing] * len(profile.node_parent)  # of the stack that ends there
    for node in range(1, len(by_node)):
        by_node[node] = min(by_frame.get(profile.node_frame[node], nothing), by_node[profile.node_parent[node]])
    found = Suppressed(bytearray(len(profile.accounts)), {})
    for account, (node, _, _) in enumerate(profile.accounts):
        if by_node[node] < nothing:
            found.accounts[account] = 1
            found.by[account] = by_node[node]
    return found
