# SPDX-License-Identifier: GPL-2.0-or-later
"""What --by groups memory by: from an account to the name it goes under, in words that are safe to show."""

from typing import Callable, Dict

from jmassif.model.kinds import OTHER
from jmassif.model.profile import Profile
from jmassif.whose.lines import LINE_VIEWS, charges
from jmassif.whose.names import NO_TENSOR, Names
from jmassif.whose.threads import thread_naming


def naming(profile: Profile, names: Names, by: str, is_folded: bool = True) -> Callable[[int], str]:
    """A function from an account to its name in one of view.BY, "stack" excepted; or in "group".

    Unless `is_folded` the views by line charge memory to the innermost Python frame, internal or not, and threads that share a
    name are told apart.
    """
    if by in LINE_VIEWS:
        charged = charges(profile, names, by, is_folded)
        return lambda account: charged(account).label
    accounts = profile.accounts
    table: Dict[str, Callable[[int], str]] = {
        "kind": lambda account: accounts[account].kind,
        "owner": lambda account: accounts[account].owner,
        "group": lambda account: profile.group_of.get(accounts[account].owner, OTHER),
        "role": lambda account: profile.role(account) or NO_TENSOR,
        "library": names.library,
    }
    return table[by] if by != "thread" else thread_naming(profile, is_folded)
