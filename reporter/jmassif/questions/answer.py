# SPDX-License-Identifier: GPL-2.0-or-later
"""Whose memory it is, in a sentence: what is yours, what is cached and not in use, then libraries and the runtime."""

from typing import Callable, List, Tuple

from jmassif.model.profile import Profile
from jmassif.model.records import Composition
from jmassif.questions.ledger import Ledger, LedgerRow
from jmassif.questions.place import name_owners, place_sentence, place_to_look
from jmassif.units import percent, size
from jmassif.whose.names import Names

_WHOSE = {
    "yours": "yours",
    "cached": "cached and not in use",
    "libraries": "held by libraries",
    "runtime": "held by the runtime",
    "other": "of owners without a group",
}
# Less would be "0.0 %".
_LEAST_SHARE = 0.0005

NOTHING = "No memory is on record here."

# A pool's name, "" where both sides are one; and what a row has of it.
Pool = Tuple[str, Callable[[LedgerRow], int]]


def _shares(table: Ledger, bytes_of: Callable[[LedgerRow], int]) -> str:
    """ "62.1 % is yours (tensor 1.20 GiB, app 3.00 MiB); 30.0 % is held by libraries (…)" """
    total = bytes_of(table.total)
    shares = []
    for group, owners in table.groups:
        if bytes_of(group) < _LEAST_SHARE * total:
            continue
        share = f"{percent(bytes_of(group), total)} is {_WHOSE[group.name]}"
        named = sorted((o for o in owners if bytes_of(o)), key=lambda owner: -bytes_of(owner))
        if group.name != "cached":
            share += f" ({name_owners([(owner.name, bytes_of(owner)) for owner in named])})"
        shares.append(share)
    return "; ".join(shares)


def pools_of(table: Ledger, is_discrete: bool) -> List[Pool]:
    """What may be added up: all memory, or on a discrete GPU the device's and the host's; those that hold anything.

    Memory of the host has no name where there is no other.
    """
    sides: List[Pool] = [("device", lambda row: row.device.bytes), ("host", lambda row: row.host.bytes)]
    used = [pool for pool in sides if pool[1](table.total)]
    is_apart = (is_discrete and len(used) > 1) or (used and not table.total.host.bytes)
    return used if is_apart else [("", lambda row: row.bytes)]


def amount(table: Ledger, pool: Pool) -> str:
    """ "190 MiB of device memory", "233 MiB (43.0 MiB host + 190 MiB device)" """
    name, bytes_of = pool
    total = table.total
    if name or not total.device.bytes:
        return size(bytes_of(total)) + (f" of {name} memory" if name else "")
    return f"{size(total.bytes)} ({size(total.host.bytes)} host + {size(total.device.bytes)} device)"


def whose(table: Ledger, pool: Pool) -> str:
    """A sentence on whose a pool's memory is."""
    name, bytes_of = pool
    of = f"Of its {name} memory" if name else "Of that"
    return f"{of} {_shares(table, bytes_of)}."


def answer(profile: Profile, names: Names, composition: Composition, table: Ledger) -> str:
    """Where the memory went at any moment, in words that are safe to show: how much, whose, and where to look."""
    if not table.total.bytes:
        return NOTHING
    texts = []
    for pool in pools_of(table, profile.is_discrete):
        texts.append(f"The program held {amount(table, pool)}: {_shares(table, pool[1])}.")
    first = pools_of(table, profile.is_discrete)[0]
    place = place_to_look(profile, names, composition, first[0])
    if place:
        texts.append(place_sentence(place))
    return " ".join(texts)
