# SPDX-License-Identifier: GPL-2.0-or-later
"""Where the memory went, in a sentence or two: whose it is, and the largest single place."""

from typing import Callable, Dict, List, NamedTuple, Optional, Tuple, Union

from jmassif.model.kinds import side_of
from jmassif.model.profile import Profile
from jmassif.model.records import Composition
from jmassif.questions.ledger import Ledger, LedgerRow
from jmassif.units import percent, size
from jmassif.whose.names import Names

_WHOSE = {
    "yours": "yours",
    "cached": "reserved by a cache and not in use",
    "libraries": "held by libraries",
    "runtime": "held by the runtime",
    "other": "of owners without a group",
}


def _shares(table: Ledger, bytes_of: Callable[[LedgerRow], int]) -> str:
    """ "62.1 % is yours (tensor 1.20 GiB, app 3.00 MiB); 30.0 % is held by libraries (…)" """
    total = bytes_of(table.total)
    shares = []
    for group, owners in sorted(table.groups, key=lambda row: -bytes_of(row[0])):
        if not bytes_of(group):
            continue
        share = f"{percent(bytes_of(group), total)} is {_WHOSE[group.name]}"
        named = sorted((o for o in owners if bytes_of(o)), key=lambda owner: -bytes_of(owner))
        if group.name != "cached":
            parts = [f"{owner.name} {size(bytes_of(owner))}" for owner in named[:3]]
            share += f" ({', '.join(parts)}{', …' if len(named) > 3 else ''})"
        shares.append(share)
    return "; ".join(shares)


class Place(NamedTuple):
    """All memory of one kind and owner that one Python line or, without Python, one frame is to blame for."""

    bytes: int
    kind: str
    owner: str
    account: int  # its largest


def largest_place(profile: Profile, names: Names, composition: Composition) -> Optional[Place]:
    """The place that holds most; None if all memory is without a stack, or listed only."""
    found: Dict[Tuple[Union[int, str], str, str], Place] = {}
    for account, (n_bytes, _) in composition.items():
        node, kind, owner = profile.accounts[account]
        if not node or not side_of(kind):
            continue
        key = (names.charged(account) or names.site_frame(account), kind, owner)
        place = found.get(key)
        if place is None:
            found[key] = Place(n_bytes, kind, owner, account)
        else:
            is_larger = n_bytes > composition[place.account][0]
            found[key] = Place(place.bytes + n_bytes, kind, owner, account if is_larger else place.account)
    if not found:
        return None
    return max(found.values(), key=lambda place: (place.bytes, -place.account))


def answer(profile: Profile, names: Names, composition: Composition, table: Ledger) -> str:
    """Where the memory went, in words that are safe to show: one sentence on whose it is, one on the largest single place."""
    total = table.total
    if not total.bytes:
        return "No memory is on record here."
    sides: List[Tuple[str, Callable[[LedgerRow], int]]] = [
        ("device", lambda row: row.device.bytes),
        ("host", lambda row: row.host.bytes),
    ]
    used = [(side, bytes_of) for side, bytes_of in sides if bytes_of(total)]
    if profile.is_discrete or len(used) == 1:
        text = " ".join(
            f"The program held {size(bytes_of(total))} of {side} memory: {_shares(table, bytes_of)}."
            for side, bytes_of in used
        )
    else:
        split = " + ".join(f"{size(bytes_of(total))} {side}" for side, bytes_of in reversed(used))
        shares = _shares(table, lambda row: row.bytes)
        text = f"The program held {size(total.bytes)} ({split}). Of it {shares}."
    largest = largest_place(profile, names, composition)
    if largest:
        pool = total.bytes
        if profile.is_discrete:
            pool = total.host.bytes if side_of(largest.kind) == "host" else total.device.bytes
        line = names.charged(largest.account)
        verb = "mapped" if profile.is_sampled(largest.kind) else "allocated"
        where = f"{verb} by {names.frame(line)}" if line else f"{verb} in {names.site_frame(largest.account)}"
        text += (
            f" The largest single place: {size(largest.bytes)} ({percent(largest.bytes, pool)}) of {largest.kind} memory"
            f" ({largest.owner}), {where}."
        )
    return text
