# SPDX-License-Identifier: GPL-2.0-or-later
"""Builds a Profile from a trace: the meaning of each record, and the order that records must have.

One method a record. They refuse (raise Corrupt) a record that contradicts an earlier one, such as a snapshot with accounts
that do not add up to its totals. A snapshot group reaches the profile when it is closed, so one that the program's death
left open is dropped as a whole.
"""

import os
import time
from array import array
from collections import defaultdict
from itertools import accumulate, compress, count
from operator import not_
from typing import Any, BinaryIO, Callable, DefaultDict, Dict, List, Mapping, Optional, Sequence, Tuple, TypeVar

from jmassif.model import records
from jmassif.model.records import ALLOCATED, DEVICE_KINDS, GROUPS, HOST_KINDS, KINDS, PAGE_KINDS, PEAKS, TENSOR
from jmassif.model.run import Profile
from jmassif.reader.input import Progress, open_input
from jmassif.reader.tokens import RECORDS, Corrupt, Handler, Reader, TraceError


AnyProfile = TypeVar("AnyProfile", bound=Profile)
_Growths = Tuple[records.Growth, ...]

_MAX_ID = (1 << 32) - 1
_REASONS = ("start", "time", "request", "mark", "low-memory", "out-of-memory", "fork", "exec", "end", "signal", "exit")


def require(condition: Any, problem: str) -> None:
    if not condition:
        raise Corrupt(problem)


class Builder:
    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.live_bytes = array("Q", [0])  # by account, as of the `c` records read so far
        self.by_kind: Dict[str, int] = {}  # their sums
        self._last_node = 0  # of the last account
        self.clock = 0
        self.group: Optional[records.Snapshot] = None  # the snapshot group that is being read
        self._stated = (0, 0)  # its totals on host and device
        self._peaks: List[records.Peak] = []  # in it
        self.earlier_peaks: Dict[str, records.Peak] = {}  # the largest of the stages before
        self.snapshot_ids: Dict[int, int] = {}
        self._scope_ids: Dict[int, int] = {}
        # The indices of open regions by thread and name, the innermost last, and their number by thread.
        self._open_regions: DefaultDict[Tuple[int, str], List[int]] = defaultdict(list)
        self._n_open_regions: DefaultDict[int, int] = defaultdict(int)
        self._mapped: Dict[int, int] = {}  # address: index of the object there

    def handlers(self) -> Dict[str, Handler]:
        return {letter: getattr(self, name) if name else None for letter, (name, _) in RECORDS.items()}

    # ---- definitions -------------------------------------------------------------------------

    def define(self, table: Dict[int, Any], what: str, id_: int, value: Any) -> None:
        require(id_ and id_ not in table, f"{what} {id_} is defined twice")
        require(id_ <= _MAX_ID, f"{what} {id_} is beyond 32 bits")
        table[id_] = value

    def manifest(self, key: str, text: str) -> None:
        self.profile.manifest[key] = text
        if key == "start-unix-ms" and text.isdecimal() and len(text) < 15:
            self.profile.manifest["start"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(text) // 1000))

    def owner_group(self, owner: str, group: str) -> None:
        require(group in GROUPS, f'"{group}" is not a group')
        self.profile.group_of[owner] = group

    def string(self, id_: int, text: str) -> None:
        self.define(self.profile.strings, "string", id_, text)

    def frame(
        self,
        id_: int,
        type_: str,
        function: int,
        object_: int,
        file: int,
        line: int,
        address: int,
        place: Optional[Tuple[int, int]] = None,
    ) -> None:
        require(type_ in ("n", "i", "p", "m", "t"), f'"{type_}" is not a type of frame')
        strings = self.profile.strings
        require(strings.keys() >= {function, object_, file}, f"frame {id_} uses a string that is not defined")
        if type_ == "p":
            self.profile.python_frames.add(id_)
        if place:
            require(type_ == "n" and not file, f"frame {id_} has a line, and the place of one")
            require(place[0] in strings, f"frame {id_} uses a string that is not defined")
            self.profile.line_places[id_] = place
        self.define(self.profile.frames, "frame", id_, (type_, function, object_, file, line, address))

    def source(self, path: int, crc32: str) -> None:
        self.profile.source_hashes[self.text(path)] = crc32

    def thread(self, number: int, name: int) -> None:
        self.profile.thread_names[number] = self.text(name)

    def nodes(self, rows: "array[int]") -> None:
        parents, frames = self.profile.node_parent, self.profile.node_frame
        id_ = begin = len(frames)
        up = 1
        new_parents, new_frames = [], []
        for number in rows:
            if number < 0:
                if up != 1:
                    raise Corrupt(f"node {id_} has two callers")
                up = -number
            else:
                new_parents.append(id_ - up)
                new_frames.append(number)
                id_ += 1
                up = 1
        require(up == 1, f"node {id_} has a caller and no frame")
        if not self.profile.frames.keys() >= set(new_frames):
            raise Corrupt(f"frame {min(set(new_frames) - self.profile.frames.keys())} is not defined")
        if min(new_parents, default=0) < 0:
            raise Corrupt(f"a node from {begin} on has a caller before the first node")
        parents.extend(new_parents)
        frames.extend(new_frames)

    def account_type(self, id_: int, kind: str, owner: str) -> None:
        types = self.profile.accounts.types
        require(id_ == len(types), f"type {id_} of accounts does not follow the last one")
        require(id_ < 1 << 16, "more types of accounts than 65,535")
        require(kind in KINDS, f'"{kind}" is not a kind of memory')
        types.append(records.AccountType(kind, owner))

    def accounts(self, rows: "array[int]") -> None:
        accounts = self.profile.accounts
        steps, types = rows[0::2], rows[1::2]
        steps[0] += self._last_node
        try:
            nodes = array("I", accumulate(steps))
        except OverflowError:
            raise Corrupt("an account's node lies before the first node")
        require(max(nodes) < len(self.profile.node_frame), f"node {max(nodes)} is not defined")
        require(0 < min(types) and max(types) < len(accounts.types), "an account's type is not defined")
        self._last_node = nodes[-1]
        accounts.nodes.extend(nodes)
        accounts.type_numbers.extend(array("H", types))
        self.live_bytes.frombytes(bytes(8 * len(nodes)))

    def role(self, account: int, role: str) -> None:
        self.kind_of(account)
        owner = self.profile.accounts[account].owner
        require(owner == TENSOR, f"account {account} has a role, but its owner is {owner}")
        self.define(self.profile.roles, "the role of account", account, role)

    def kind_of(self, account: int) -> str:
        accounts = self.profile.accounts
        require(0 < account < len(accounts), f"account {account} is not defined")
        return accounts.kind(account)

    def check_defined(self, accounts: "array[int]") -> None:
        for account in (min(accounts), max(accounts)):
            self.kind_of(account)

    def text(self, id_: int) -> str:
        require(id_ in self.profile.strings, f"string {id_} is not defined")
        return self.profile.strings[id_]

    # ---- totals and snapshots ----------------------------------------------------------------

    def totals(self, time: int, host: int, device: int, maximum: int) -> None:
        require(time >= self.clock, f"time goes back from {self.clock} to {time}")
        self.clock = time
        timeline = self.profile.timeline
        timeline.time.append(time)
        timeline.host.append(host)
        timeline.device.append(device)
        timeline.maximum.append(max(maximum, host + device))

    def snapshot(self, id_: int, time: int, reason: str, host: int, device: int) -> None:
        require(not self.group, "a snapshot begins inside another one")
        require(reason in _REASONS, f'"{reason}" is not a reason for a snapshot')
        self.define(self.snapshot_ids, "snapshot", id_, id_)
        self.totals(time, host, device, 0)
        self.group = records.Snapshot(id_, time, reason, {}, records.Changes(), records.PageChanges(), self._position())
        self._stated, self._peaks = (host, device), []

    def _open_group(self) -> records.Snapshot:
        if not self.group:
            raise Corrupt("a record of a snapshot stands outside of one")
        return self.group

    def changes(self, rows: "array[int]") -> None:
        """A run of accounts' balances, the fields of one after the other's."""
        if self.group is None or self._peaks:
            raise Corrupt("an account's balance stands outside of its place in a snapshot")
        accounts = rows[0 :: records.Changes.WIDTH]
        self.check_defined(accounts)
        live, type_of, types = self.live_bytes, self.profile.accounts.type_numbers, self.profile.accounts.types
        growth = [0] * len(types)
        for account, live_bytes in zip(accounts, rows[1 :: records.Changes.WIDTH]):
            growth[type_of[account]] += live_bytes - live[account]
            live[account] = live_bytes
        by_kind = self.by_kind
        for number in set(map(type_of.__getitem__, accounts)):
            kind = types[number].kind
            by_kind[kind] = by_kind.get(kind, 0) + growth[number]
        self.group.changes.extend(rows)

    def pages(self, account: int, virtual: int, shared: int, swapped: int) -> None:
        kind = self.kind_of(account)
        require(kind in PAGE_KINDS, f"account {account} has mappings, but is of kind {kind}")
        self._open_group().pages.extend((account, virtual, shared, swapped))

    def peak(self, which: str, time: int, host: int, device: int) -> None:
        require(time <= self._open_group().time, f"the {which} peak lies after its snapshot")
        require(which in PEAKS or which == ALLOCATED, f'"{which}" is not a peak')
        snapshot, differences = len(self.profile.snapshots), records.Differences()
        self._peaks.append(records.Peak(which, time, host, device, snapshot, dict(self.by_kind), differences))

    def at_peak(self, rows: "array[int]") -> None:
        """Accounts' balances at a peak, the fields of one after the other's."""
        self._open_group()
        require(self._peaks, "a balance at a peak stands before the peak")
        peak, live = self._peaks[-1], self.live_bytes
        width = records.Differences.WIDTH
        for account, live_bytes in zip(rows[0::width], rows[1::width]):
            kind = self.kind_of(account)
            peak.by_kind[kind] = peak.by_kind.get(kind, 0) + live_bytes - live[account]
        peak.differences.extend(rows)

    def check_sums(self, what: str, by_kind: Mapping[str, int], host: int, device: int) -> None:
        for side, kinds, stated in (("host", HOST_KINDS, host), ("device", DEVICE_KINDS, device)):
            held = sum(by_kind.get(kind, 0) for kind in kinds)
            require(held == stated, f"{what} has {stated} {side} bytes, but its accounts hold {held}")

    def snapshot_end(self, id_: int) -> None:
        profile, group = self.profile, self._open_group()
        require(id_ == group.id, f"snapshot {group.id} is closed as {id_}")
        self.check_sums(f"snapshot {id_}", self.by_kind, *self._stated)
        index = len(profile.snapshots)
        profile.snapshots.append(group._replace(by_kind=dict(self.by_kind)))
        if group.reason == "mark" and profile.marks:
            profile.marks[-1] = profile.marks[-1]._replace(snapshot=index)
        if group.reason == "out-of-memory" and profile.exhaustions:
            self._change(max(profile.exhaustions), snapshot=index)
        for peak in self._peaks:
            self.check_sums(f"the {peak.which} peak", peak.by_kind, peak.host, peak.device)
            if profile.stages:
                profile.stages[-1].peaks[peak.which] = peak
            before = self.earlier_peaks.get(peak.which)
            if before is None or peak.bytes > before.bytes:
                profile.peaks[peak.which] = peak
        self.group = None

    # ---- events ------------------------------------------------------------------------------

    def block(self, time: int, address: int, size: int, account: int) -> None:
        self.kind_of(account)
        self.profile.blocks.extend((time, address, size, account))

    def block_end(self, time: int, address: int, account: int) -> None:
        self.kind_of(account)
        self.profile.frees.append(self._position())
        self.profile.blocks.extend((time, address, 0, account))

    def block_run(
        self,
        times: "array[int]",
        addresses: "array[int]",
        sizes: "array[int]",
        accounts: "array[int]",
        begins: Sequence[Optional[bytes]],
    ) -> bool:
        """Blocks that begin and end. False: an account is not defined."""
        if not 0 < min(accounts) <= max(accounts) < len(self.profile.accounts):
            return False
        rows = array("Q", bytes(8 * records.BlockEvents.WIDTH * len(times)))
        for place, column in enumerate((times, addresses, sizes, accounts)):
            rows[place :: records.BlockEvents.WIDTH] = column
        self.profile.frees.extend(compress(range(self._position(), self._position() + len(times)), map(not_, begins)))
        self.profile.blocks.extend(rows)
        return True

    def block_threshold(self, time: int, n_bytes: int) -> None:
        self.profile.block_thresholds.append((time, n_bytes))

    def _position(self) -> int:
        return self.profile.blocks.n_rows

    def mapping(self, time: int, address: int, size: int, handle: Optional[int] = None) -> None:
        """Begins or, without a handle, ends."""
        self.profile.mappings.append(records.Mapped(self._position(), address, size, handle))

    def exhaustion(
        self, id_: int, time: int, thread: int, account: int, api: int, error: int, n_bytes: int, again: int
    ) -> None:
        self.kind_of(account)
        events, name = self.profile.exhaustions, self.text(api)
        require(not again or again in events, f"event {again} is not defined")
        event = records.Exhaustion(id_, time, thread, account, name, error, n_bytes, again, {}, self._position())
        self.define(events, "event", id_, event)

    def _event(self, id_: int) -> records.Exhaustion:
        require(id_ in self.profile.exhaustions, f"event {id_} is not defined")
        return self.profile.exhaustions[id_]

    def _change(self, event: int, **fields: Any) -> None:
        self.profile.exhaustions[event] = self._event(event)._replace(**fields)

    def exhaustion_figure(self, event: int, figure: str, n_bytes: int) -> None:
        self._event(event).figures[figure] = n_bytes

    def outcome(self, event: int, time: int, outcome: str) -> None:
        require(outcome in ("retried", "raised"), f'"{outcome}" is not an outcome')
        self._change(event, outcome=outcome, outcome_time=time, outcome_position=self._position())

    def _check_growths(self, growths: _Growths) -> None:
        for growth in growths:
            require(growth.kind in KINDS, f'"{growth.kind}" is not a kind of memory')

    def copy(
        self,
        id_: int,
        time: int,
        host: int,
        device: int,
        copied_by: int,
        pinned_by: int,
        n_bytes: int,
        source: int,
        to: int,
    ) -> None:
        require(id_, "a copy has the number 0")
        require(self.kind_of(host) in HOST_KINDS, f"account {host} is not of host memory")
        require(self.kind_of(device) in DEVICE_KINDS, f"account {device} is not of device memory")
        for account in filter(None, (copied_by, pinned_by)):
            self.kind_of(account)
        self.profile.copies[id_] = records.Copy(time, host, device, copied_by, pinned_by, n_bytes, source, to)

    def copy_end(self, id_: int, time: int) -> None:
        if not id_:
            self.profile.copies_until = time
            return
        require(id_ in self.profile.copies, f"copy {id_} is not defined")
        self.profile.copies[id_] = self.profile.copies[id_]._replace(until=time)

    def copy_sum(self, account: int, count: int, n_bytes: int) -> None:
        self.kind_of(account)
        self.profile.copied[account] = (count, n_bytes)

    def container(
        self,
        account: int,
        elements: int,
        of_type: int,
        container: int,
        type_: int,
        variable: int,
        sort: str,
        holder: int,
    ) -> None:
        self.kind_of(account)
        texts = (self.text(container), self.text(type_), self.text(variable), sort, self.text(holder))
        self.profile.containers.append(records.Container(account, elements, of_type, *texts))

    def scope(
        self, id_: int, parent: int, thread: int, begin: int, end: int, node: int, name: int, growths: _Growths
    ) -> None:
        require(node < len(self.profile.node_frame), f"node {node} is not defined")
        self._check_growths(growths)
        self.define(self._scope_ids, "scope", id_, id_)
        require(begin <= end, f"scope {id_} ends before it begins")
        require(parent not in self._scope_ids, f"scope {id_} is written after the one around it")
        self.profile.scopes.append(records.Scope(id_, parent, thread, begin, end, node, self.text(name), growths))

    def scope_sum(self, name: int, count: int, time: int, growths: _Growths) -> None:
        self._check_growths(growths)
        text = self.text(name)
        self.profile.scope_sums[text] = records.ScopeSum(text, count, time, growths)

    def failure(self, name: int, code: int, count: int) -> None:
        self.profile.failures[(self.text(name), code)] = count

    def counter(self, key: str, count: int) -> None:
        self.profile.counters[key] = count

    def system(self, time: int, figure: str, n_bytes: int) -> None:
        if figure == "pss":  # others' shares of the same time are of an earlier sample
            for name, readings in self.profile.system.items():
                while name.startswith("pss.") and readings[0] and readings[0][-1] == time:
                    for column in readings:
                        column.pop()
        times, values = self.profile.system.setdefault(figure, (array("Q"), array("Q")))
        times.append(time)
        values.append(n_bytes)

    def mark(self, time: int, name: int) -> None:
        self.profile.marks.append(records.Mark(time, self.text(name)))

    def stage(self, time: int) -> None:
        marks = self.profile.marks
        require(not self.group, "a stage begins inside a snapshot")
        if not marks or marks[-1].snapshot is None:
            raise Corrupt("a stage begins without a mark and its snapshot")
        self.earlier_peaks = dict(self.profile.peaks)
        self.profile.stages.append(records.Stage(marks[-1].text, marks[-1].snapshot, {}))

    def region(self, time: int, thread: int, name: int) -> None:
        text, row, depth = self.text(name), len(self.profile.timeline.time), self._n_open_regions[thread]
        self._n_open_regions[thread] += 1
        self._open_regions[thread, text].append(len(self.profile.regions))
        self.profile.regions.append(
            records.Region(time, None, thread, depth, text, row, row, self.profile.blocks.n_rows)
        )

    def region_end(self, time: int, thread: int, name: int) -> None:
        """Closes the innermost region of that name. One that was never begun is the program's slip: passed over."""
        regions, open_ = self.profile.regions, self._open_regions[thread, self.text(name)]
        if open_:
            index = open_.pop()
            rows = len(self.profile.timeline.time), self.profile.blocks.n_rows
            regions[index] = regions[index]._replace(end=time, end_row=rows[0], end_position=rows[1])
            self._n_open_regions[thread] -= 1

    def region_sum(self, name: int, count: int, time: int) -> None:
        text = self.text(name)
        self.profile.region_sums[text] = records.RegionSum(text, count, time)

    def object(self, time: int, address: int, size: int, soname: int, path: str) -> None:
        objects = self.profile.objects
        self._mapped[address] = len(objects)
        objects.append(records.LoadedObject(time, None, address, size, self.text(soname), path))

    def object_end(self, time: int, address: int) -> None:
        """An object that was mapped before this trace began, by the parent of a fork, is not known: passed over."""
        index = self._mapped.pop(address, None)
        if index is not None:
            self.profile.objects[index] = self.profile.objects[index]._replace(end=time)

    def end(self, time: int, reason: str, code: int) -> None:
        require(reason in ("exit", "signal", "end"), f'"{reason}" is not a way to end')
        require(not self.group, "the program ends inside a snapshot")
        self.profile.end = records.End(time, reason, code)


def load(stream: BinaryIO, into: Optional[Profile] = None) -> Profile:
    """Reads a whole trace into a profile, a new one by default: all but the lines of native code. Raises TraceError."""
    builder = Builder(Profile() if into is None else into)
    reader = Reader(builder.handlers(), builder.block_run)
    reader.read(stream)
    unfinished = f"snapshot {builder.group.id} is unfinished and left out" if builder.group else None
    builder.profile.truncation = "; ".join(filter(None, [reader.truncation, unfinished])) or None
    name_generated_code(builder.profile)
    return builder.profile


# The file of code compiled from a string, as by exec; a trace has no more of it than function and line.
_GENERATED = "<string>"


def name_generated_code(profile: Profile) -> None:
    """Names modules from a string by the Python line that ran them, so that code of several strings does not share its lines.

    A module without such a caller (`python -c`) keeps its name, and so do functions that others call.
    """
    frames, strings = profile.frames, profile.strings
    parents, frame_of = profile.node_parent, profile.node_frame
    generated = {id_ for id_, frame in frames.items() if frame[0] == "p" and strings[frame[3]] == _GENERATED}

    def caller_of(node: int) -> int:
        is_module = False
        while node and (frames[frame_of[node]][0] != "p" or (not is_module and frame_of[node] in generated)):
            is_module = is_module or strings[frames[frame_of[node]][1]] == "<module>"
            node = parents[node]
        return frame_of[node] if node and is_module else 0

    nodes = [node for node, frame in enumerate(frame_of) if frame in generated] if generated else []
    ids, texts = count(max(frames, default=0) + 1), count(max(strings) + 1)
    new: Dict[Tuple[int, int], int] = {}  # by frame, and caller's
    for node in nodes:  # callers first: they have their names
        frame, caller = frame_of[node], caller_of(node)
        if caller and (frame, caller) not in new:
            new[frame, caller] = id_ = next(ids)
            text, line = next(texts), frames[caller][4]
            strings[text] = f"{_GENERATED} of {strings[frames[caller][3]].rpartition('/')[2]}:{line}"
            type_, function, object_, _, line, address = frames[frame]
            frames[id_] = (type_, function, object_, text, line, address)
            generated.add(id_)
        frame_of[node] = new.get((frame, caller), frame)


# A program that runs replaces the end of its trace now and then. Who read that meanwhile reads again.
_TRIES = 4


def _state(path: str) -> Optional[Tuple[int, int]]:
    try:
        state = os.stat(path)
    except OSError:
        return None
    return state.st_size, state.st_mtime_ns


def load_file(path: str, progress: Optional[Progress] = None, has_lines: bool = True) -> Profile:
    """Reads the trace at `path`, which may be compressed; "-" is standard input. Raises TraceError.

    Unless `has_lines` native code has no source lines where they are still to be found, and no inlined calls.
    """
    return load_as(Profile, path, progress, has_lines)


def load_as(
    make: Callable[[], AnyProfile], path: str, progress: Optional[Progress] = None, has_lines: bool = True
) -> AnyProfile:
    """The same, into what `make` makes."""
    for attempt in range(1, _TRIES + 1):
        before = _state(path)
        profile = make()
        try:
            with open_input(path, progress) as stream:
                load(stream, profile)
            break
        except OSError as error:
            raise TraceError(f"cannot be read: {error.strerror}")
        except TraceError:
            if attempt == _TRIES or _state(path) == before:
                raise
    if profile.line_places:
        from jmassif.reader.native_lines import find_lines

        find_lines(profile, has_lines)
    return profile
