# SPDX-License-Identifier: GPL-2.0-or-later
"""The half of building a profile that is about definitions: what other records refer to by number.

One method a record. They refuse (raise Corrupt) what contradicts the records before: an id that is not defined, or is twice.
"""

from array import array
from typing import Any, Dict, List, Set

from jmassif.model.kinds import GROUPS, KINDS, TENSOR
from jmassif.model.profile import Profile
from jmassif.model.records import NO_ACCOUNT, Account
from jmassif.trace.grammar import Corrupt

# By kind: a number above 0, which takes a byte.
KIND_NUMBERS = {kind: number for number, kind in enumerate(KINDS, 1)}
# Ids of nodes and accounts come in order from a recorder. They may have gaps, but these must not cost gigabytes, all together.
_MAX_GAPS = 1 << 18


def require(condition: Any, problem: str) -> None:
    if not condition:
        raise Corrupt(problem)


def no_node(node: int) -> Corrupt:
    return Corrupt(f"node {node} is not defined")


class Definitions:
    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.live_bytes = array("Q", [0])  # by account, as of the `c` records read so far
        self.kind_numbers = bytearray(1)  # by account; 0: not defined
        self.kinds: Set[str] = set()  # that accounts have
        self._n_left_out = 0  # ids

    def define(self, table: Dict[int, Any], what: str, id_: int, value: Any) -> None:
        require(id_ and id_ not in table, f"{what} {id_} is defined twice")
        table[id_] = value

    def manifest(self, key: str, text: str) -> None:
        self.profile.manifest[key] = text

    def owner_group(self, owner: str, group: str) -> None:
        require(group in GROUPS, f'"{group}" is not a group')
        self.profile.group_of[owner] = group

    def string(self, id_: int, text: str) -> None:
        self.define(self.profile.strings, "string", id_, text)

    def frame(self, id_: int, type_: str, function: int, object_: int, file: int, line: int, address: int) -> None:
        require(type_ in ("n", "i", "p", "m", "t"), f'"{type_}" is not a type of frame')
        strings = self.profile.strings
        require(
            function in strings and object_ in strings and file in strings,
            f"frame {id_} uses a string that is not defined",
        )
        frame = (type_, function, object_, file, line, address)
        self.define(self.profile.frames, "frame", id_, frame)

    def source(self, path: int, sha256: str) -> None:
        self.profile.source_hashes[self.text(path)] = sha256

    def thread(self, number: int, name: int) -> None:
        self.profile.thread_names[number] = self.text(name)

    def nodes(self, up: int, new_frames: List[int]) -> None:
        parents, frames = self.profile.node_parent, self.profile.node_frame
        id_ = len(frames)
        if up >= id_:
            raise Corrupt(f"node {id_} has no node {up} before it")
        for frame in new_frames:
            if frame not in self.profile.frames:
                raise Corrupt(f"frame {frame} is not defined")
        parents.append(id_ - up if up else 0)
        parents.extend(range(id_, id_ + len(new_frames) - 1))
        frames.extend(new_frames)

    def node_of_version_1(self, id_: int, parent: int, frame: int) -> None:
        parents, frames = self.profile.node_parent, self.profile.node_frame
        n_nodes = len(frames)
        if parent and (parent >= n_nodes or not frames[parent]):
            raise no_node(parent)
        if frame not in self.profile.frames:
            raise Corrupt(f"frame {frame} is not defined")
        if id_ < n_nodes:
            require(id_ and not frames[id_], f"node {id_} is defined twice")
            parents[id_], frames[id_] = parent, frame
            return
        if id_ > n_nodes:
            self._leave_out(id_ - n_nodes, f"node {id_}")
            parents.extend([0] * (id_ - n_nodes))
            frames.extend([0] * (id_ - n_nodes))
        parents.append(parent)
        frames.append(frame)

    @property
    def has_gaps(self) -> bool:
        """Of ids."""
        return bool(self._n_left_out)

    def _leave_out(self, n_ids: int, what: str) -> None:
        self._n_left_out += n_ids
        require(self._n_left_out < _MAX_GAPS, f"{what} is far beyond the others")

    def _new_account(self, node: int, kind: str, owner: str) -> None:
        self.profile.accounts.append(Account(node, kind, owner))
        self.live_bytes.append(0)
        self.kind_numbers.append(KIND_NUMBERS[kind])
        self.kinds.add(kind)

    def account(self, back: int, kind: str, owner: str) -> None:
        node = len(self.profile.node_frame) - 1 - back
        if node < 0:
            raise Corrupt(f"there are no {back} nodes before this account")
        if kind not in KINDS:
            raise Corrupt(f'"{kind}" is not a kind of memory')
        self._new_account(node, kind, owner)

    def account_of_version_1(self, id_: int, node: int, kind: str, owner: str) -> None:
        accounts = self.profile.accounts
        frames = self.profile.node_frame
        if node and (node >= len(frames) or not frames[node]):
            raise no_node(node)
        if kind not in KINDS:
            raise Corrupt(f'"{kind}" is not a kind of memory')
        n_accounts = len(accounts)
        if id_ < n_accounts:
            require(id_ and accounts[id_] is NO_ACCOUNT, f"account {id_} is defined twice")
            accounts[id_] = Account(node, kind, owner)
            self.kind_numbers[id_] = KIND_NUMBERS[kind]
            self.kinds.add(kind)
            return
        if id_ > n_accounts:
            self._leave_out(id_ - n_accounts, f"account {id_}")
            accounts.extend([NO_ACCOUNT] * (id_ - n_accounts))
            self.live_bytes.extend([0] * (id_ - n_accounts))
            self.kind_numbers.extend(bytes(id_ - n_accounts))
        self._new_account(node, kind, owner)

    def role(self, account: int, role: str) -> None:
        self.kind_of(account)
        owner = self.profile.accounts[account].owner
        require(owner == TENSOR, f"account {account} has a role, but its owner is {owner}")
        self.define(self.profile.roles, "the role of account", account, role)

    def kind_of(self, account: int) -> str:
        accounts = self.profile.accounts
        kind = accounts[account].kind if account < len(accounts) else ""
        if not kind:
            raise Corrupt(f"account {account} is not defined")
        return kind

    def text(self, id_: int) -> str:
        require(id_ in self.profile.strings, f"string {id_} is not defined")
        return self.profile.strings[id_]
