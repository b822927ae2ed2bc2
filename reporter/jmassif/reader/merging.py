# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes one account of several that turn out to have the same stack, kind, owner and role. The others keep their ids, empty."""

from array import array
from typing import Any, Dict, List, Tuple

from jmassif.model.records import Changes, Peak
from jmassif.model.run import Profile

_Groups = Dict[int, List[int]]  # by each account of several that become one: all of them
_Values = Dict[int, Tuple[int, ...]]  # of such accounts: their numbers, as they were recorded


def _groups(profile: Profile) -> _Groups:
    accounts, roles = profile.accounts, profile.roles
    first: Dict[Tuple[int, int, str], int] = {}
    groups: _Groups = {}
    for account, (node, type_) in enumerate(zip(accounts.nodes, accounts.type_numbers)):
        known = first.setdefault((node, type_, roles.get(account, "")), account)
        if known != account:
            groups.setdefault(known, [known]).append(account)
            groups[account] = groups[known]
    return groups


def _merge_rows(columns: "List[array[int]]", values: _Values, groups: _Groups) -> None:
    """Rows of accounts with their numbers from here on: of each group one has the sums, and the others 0.

    Only rows of groups are changed, for of a large run these are few.
    """
    accounts = columns[0]
    places: Dict[int, List[int]] = {}  # by the first of a group
    for at, account in enumerate(accounts):
        if account in groups:
            values[account] = tuple(column[at] for column in columns[1:])
            places.setdefault(groups[account][0], []).append(at)
    nothing = (0,) * (len(columns) - 1)
    for first, rows in places.items():
        sums = map(sum, zip(*(values.get(account, nothing) for account in groups[first])))
        _put(columns, next((at for at in rows if accounts[at] == first), rows[0]), (first, *sums), rows, nothing)


def _put(
    columns: "List[array[int]]", place: int, row: Tuple[int, ...], rows: List[int], nothing: Tuple[int, ...]
) -> None:
    for at in rows:
        for number, value in enumerate(nothing, 1):
            columns[number][at] = value
    for number, value in enumerate(row):
        try:
            columns[number][place] = value
        except OverflowError:
            columns[number] = array("Q", columns[number])
            columns[number][place] = value


def _merge_packed(rows: Any, values: _Values, groups: _Groups) -> None:
    """The same, of rows that lie end to end."""
    columns = [rows[place :: rows.WIDTH] for place in range(rows.WIDTH)]
    _merge_rows(columns, values, groups)
    for place, column in enumerate(columns):
        rows[place :: rows.WIDTH] = column


def merge_accounts(profile: Profile) -> None:
    groups = _groups(profile)
    if not groups:
        return
    values: _Values = {}
    pages: _Values = {}
    peaks: Dict[int, Dict[int, Peak]] = {}  # by snapshot; a stage may share one with the run
    for each in (profile.peaks, *(stage.peaks for stage in profile.stages)):
        for peak in each.values():
            peaks.setdefault(peak.snapshot, {})[id(peak.differences)] = peak
    for index, snapshot in enumerate(profile.snapshots):
        changes = snapshot.changes
        columns = [getattr(changes, name) for name in Changes.__slots__]
        _merge_rows(columns, values, groups)
        for name, column in zip(Changes.__slots__, columns):
            setattr(changes, name, column)
        if snapshot.pages:
            _merge_packed(snapshot.pages, pages, groups)
        for peak in peaks.get(index, {}).values():
            # Of a peak only bytes and blocks are known; without a row they are the snapshot's.
            _merge_packed(peak.differences, {account: row[:2] for account, row in values.items()}, groups)
    first = {account: group[0] for account, group in groups.items()}
    width = profile.blocks.WIDTH
    profile.blocks[width - 1 :: width] = array("Q", [first.get(each, each) for each in profile.blocks.account])
    for id_, event in profile.exhaustions.items():
        profile.exhaustions[id_] = event._replace(account=first.get(event.account, event.account))
    for id_, copy in profile.copies.items():
        of = (copy.host, copy.device, copy.copied_by, copy.pinned_by)
        host, device, by, pinned_by = (first.get(account, account) for account in of)
        profile.copies[id_] = copy._replace(host=host, device=device, copied_by=by, pinned_by=pinned_by)
    profile.containers = [each._replace(account=first.get(each.account, each.account)) for each in profile.containers]
    copied, profile.copied = profile.copied, {}
    for account, (n_copies, n_bytes) in copied.items():
        known = profile.copied.get(first.get(account, account), (0, 0))
        profile.copied[first.get(account, account)] = known[0] + n_copies, known[1] + n_bytes
