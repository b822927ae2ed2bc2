# SPDX-License-Identifier: GPL-2.0-or-later
"""Running out of memory: what failed, why, by which arithmetic, and what would have helped.

A failed allocation and the further tries that follow it are one *incident*. Its verdict is about the last failure: by then
a caching allocator has given back what it could. Sizes are bytes; None is not known.
"""

import re
from bisect import bisect_left
from typing import Dict, List, NamedTuple

from jmassif.model.profile import Profile
from jmassif.model.records import Exhaustion
from jmassif.questions.remedies import helps_for
from jmassif.questions.segments import layouts
from jmassif.questions.situation import Situation, holdings_at_snapshots, nothing_known, situation_of
from jmassif.questions.verdict import verdict_on
from jmassif.whose.names import Names


class Incident(NamedTuple):
    tries: List[Exhaustion]  # that failed; one at least
    outcome: str  # "retried": the next one succeeded; "raised": the framework gave up; ""
    freed: int  # bytes of the device that were given back since the first
    situation: Situation
    verdict: str
    reason: str  # a sentence or two: the verdict with its numbers
    helps: List[str]  # what would have helped, by the numbers

    @property
    def last(self) -> Exhaustion:
        return self.tries[-1]

    @property
    def is_resolved(self) -> bool:
        return self.outcome == "retried"


# The runtime's functions that ask the driver for memory.
_RUNTIME_CALL = re.compile(r"cuda(?:Malloc\w*|HostAlloc|HostRegister|Free)")
# Blocks in all the layouts that are looked at: a few seconds' work.
_MOST_PIECES = 1 << 18
_MOST_INSIDE = 12  # frames of the runtime around the driver's call


def call(profile: Profile, event: Exhaustion) -> str:
    """The function that the program called: that of the runtime around the driver's, where it was one."""
    name = event.api
    for _, frame in zip(range(_MOST_INSIDE), profile.stack(profile.accounts[event.account].node)):
        function = profile.frame(frame).function
        if event.api.startswith("cu") and _RUNTIME_CALL.fullmatch(function):
            name = function
    return name


# ---- joining tries ---------------------------------------------------------------------------


def _chains(profile: Profile) -> List[List[Exhaustion]]:
    chain_of: Dict[int, List[Exhaustion]] = {}
    chains = []
    for event in profile.exhaustions.values():
        chain = chain_of.get(event.again)
        if chain is None:
            chain = []
            chains.append(chain)
        chain.append(event)
        chain_of[event.id] = chain
    return chains


# ---- all of it -------------------------------------------------------------------------------


def _positions(chain: List[Exhaustion]) -> List[int]:
    """Of the first failure, of the last, and of what came after it."""
    last = chain[-1]
    return [chain[0].position, last.position, last.outcome_position if last.outcome == "retried" else last.position]


def _freed(before: Dict[int, int], now: Dict[int, int]) -> int:
    """Bytes of the blocks that are there no more."""
    return 0 if before is now else sum(n_bytes for row, n_bytes in before.items() if row not in now)


def _last_chains(profile: Profile) -> List[List[Exhaustion]]:
    """As many as the budget has room for; the last one always. A recorder writes a few hundred events at most."""
    chains = _chains(profile)
    n_pieces = 0
    for index in reversed(range(len(chains))):
        for position in set(_positions(chains[index])):
            n_pieces += position - 2 * bisect_left(profile.frees, position)
        if n_pieces > _MOST_PIECES and index + 1 < len(chains):
            return chains[index + 1 :]
    return chains


def incidents(profile: Profile) -> List[Incident]:
    """In order of their first failures. Of a trace that tells of a great many among a great many blocks, the last ones."""
    chains = _last_chains(profile)
    wanted = [chain[-1].snapshot for chain in chains if chain[-1].snapshot is not None]
    held = holdings_at_snapshots(profile, wanted)
    before: Dict[int, Dict[int, int]] = {}  # by index of the chain
    situations: Dict[int, Situation] = {}
    found: Dict[int, Incident] = {}
    positions = sorted({position for chain in chains for position in _positions(chain)})
    at: Dict[int, List[int]] = {position: [] for position in positions}
    for index, chain in enumerate(chains):
        for position in set(_positions(chain)):
            at[position].append(index)
    # Layouts are large: each is used as it comes by.
    for position, layout in zip(positions, layouts(profile, positions)):
        for index in at[position]:
            chain = chains[index]
            first, last, after = _positions(chain)
            event = chain[-1]
            if position == first:
                before[index] = layout.made
            if position == last:
                snapshot = held.get(-1 if event.snapshot is None else event.snapshot) or nothing_known(profile, event)
                situations[index] = situation_of(profile, event, layout, snapshot)
            if position == after:
                freed = _freed(before.pop(index), layout.made)
                s = situations[index]
                verdict, reason = verdict_on(profile, chain, event.outcome, freed, s)
                helps = helps_for(profile, event.account, s, layout, verdict, event.outcome)
                found[index] = Incident(chain, event.outcome, freed, s, verdict, reason, helps)
    return [found[index] for index in range(len(chains))]


def incidents_of(profile: Profile, names: Names) -> List[Incident]:
    """incidents(), worked out once however many sections tell of them."""
    return names.once(_incidents_of)


def _incidents_of(profile: Profile, names: Names) -> List[Incident]:
    return incidents(profile)
