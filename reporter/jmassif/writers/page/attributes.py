# SPDX-License-Identifier: GPL-2.0-or-later
"""What the page's cells are grouped by besides their stacks: kind, owner, role, library, thread and Python line.

A run may have thousands of libraries, threads and lines; those that matter least become one.
"""

from typing import Dict, Iterable, List, NamedTuple, Sequence, Set, Tuple, TypeVar

from jmassif.model.profile import Profile
from jmassif.whose.charges import callers
from jmassif.whose.names import NO_TENSOR, Names
from jmassif.whose.threads import thread_naming

_Key = TypeVar("_Key", int, str)

# In the place of a line or a library that is not told apart from others of its like.
OTHERS = -1
NO_LINE = 0

OTHER_LIBRARIES, OTHER_THREADS = "(other libraries)", "(other threads)"


class Attributes(NamedTuple):
    """What accounts are grouped by, besides their stacks."""

    kind: str
    owner: str
    role: str
    library: str
    line: int  # the Python frame charged; NO_LINE or OTHERS
    thread: str  # "" where the trace does not tell
    through: Tuple[int, ...]  # the Python frames that have it in their totals
    is_chosen: bool = True  # by --only and --except


class Accounts(NamedTuple):
    """What accounts are grouped by: the distinct attributes, which of them each account has, and how much each matters."""

    attributes: List[Attributes]
    of_account: List[int]
    weights: List[float]


def grouped(profile: Profile, names: Names, weights: Sequence[float]) -> Accounts:
    """`weights` are by account: how much each matters."""
    index: Dict[Attributes, int] = {}
    of_account = [0]
    passed = callers(profile, names.folding, True)
    chosen = profile.chosen
    thread_of = thread_naming(profile, True) if profile.has_threads else lambda account: ""
    for account in range(1, len(profile.accounts)):
        node, kind, owner = profile.accounts[account]
        role = profile.role(account) or NO_TENSOR
        line = names.charged(account)
        through = passed(node) if line else ()
        is_chosen = chosen is None or bool(chosen[account])
        key = Attributes(kind, owner, role, names.library(account), line, thread_of(account), through, is_chosen)
        of_account.append(index.setdefault(key, len(index)))
    sums = [0.0] * len(index)
    for place, weight in zip(of_account[1:], weights[1:]):
        sums[place] += weight
    return Accounts(list(index), of_account, sums)


def _heaviest(keys: Iterable[_Key], weights: Iterable[float], limit: int) -> Set[_Key]:
    sums: Dict[_Key, float] = {}
    for key, weight in zip(keys, weights):
        sums[key] = sums.get(key, 0.0) + weight
    return set(sorted(sums, key=lambda key: (-sums[key], key))[:limit])


def reduced(accounts: Accounts, n_lines: int, n_libraries: int) -> Tuple[List[Attributes], List[int]]:
    """The attributes with so many lines and libraries only, and which of these each of `accounts.attributes` becomes.

    Lines are those that are charged with most, and as many of those that most was called through.
    """
    rows = accounts.attributes
    through = [(frame, weight) for row, weight in zip(rows, accounts.weights) for frame in row.through]
    lines = _heaviest((row.line for row in rows), accounts.weights, n_lines) | {NO_LINE}
    lines |= _heaviest((frame for frame, _ in through), (weight for _, weight in through), n_lines)
    libraries = _heaviest((row.library for row in rows), accounts.weights, n_libraries)
    threads = _heaviest((row.thread for row in rows), accounts.weights, n_libraries)
    index: Dict[Attributes, int] = {}
    places = []
    for row in rows:
        line = row.line if row.line in lines else OTHERS
        library = row.library if row.library in libraries else OTHER_LIBRARIES
        passed = tuple(frame for frame in row.through if frame in lines)
        thread = row.thread if row.thread in threads else OTHER_THREADS
        key = row._replace(line=line, library=library, thread=thread, through=passed)
        places.append(index.setdefault(key, len(index)))
    return list(index), places
