# SPDX-License-Identifier: GPL-2.0-or-later
"""What would make a run smaller that did not run out of memory: only what its own figures say that it would.

What would have helped an allocation that failed is in remedies.py.
"""

import re
from bisect import bisect_left, bisect_right
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from jmassif.analysis.aggregate import Ledger
from jmassif.analysis.device_memory import Layout, Segment, is_placed, layout_at, layouts, position_of_peak
from jmassif.analysis.moments import Moment, main_peak
from jmassif.analysis.run_info import fact
from jmassif.attribution.names import Names
from jmassif.model.records import Exhaustion, side_of
from jmassif.model.replay import Replay
from jmassif.model.run import Profile
from jmassif.units import count, percent, size


# ---- situation ----
# What there was when an allocation failed, and the arithmetic that a verdict on it follows from. None is not known.

MIB = 1 << 20


class Situation(NamedTuple):
    """What there was at the last failure."""

    side: str  # of what was asked for
    asked: Optional[int]
    free: Optional[int]  # of the device, as the driver said; of the machine, for memory of the host
    gathered: int  # of what was asked for: got already, by pieces
    total: Optional[int]  # likewise
    reserved: int  # by segments on the device
    cached: int  # of that, in no block
    holes: int
    largest_hole: int
    returnable: int  # in segments of which nothing is used
    pool_unused: int  # reserved by stream-ordered pools beyond their blocks
    own: Optional[int]  # this program's, on the side; of both where they share the memory
    others: Optional[int]  # what else is not free
    limit: Optional[int]  # of the address space
    by_owner: Dict[str, int]  # all that this program held

    @property
    def missing(self) -> Optional[int]:
        """What was asked for and neither free nor to be had from caches."""
        if self.asked is None or self.free is None:
            return None
        return max(0, self.asked - self.gathered - self.free - self.returnable - self.pool_unused)


class Holdings(NamedTuple):
    host: int
    device: int
    by_owner: Dict[str, int]


def holdings_at_snapshots(profile: Profile, wanted: Sequence[int]) -> Dict[int, Holdings]:
    """By index of the snapshot: what the program held. One pass for all of them."""
    found: Dict[int, Holdings] = {}
    replay = Replay(len(profile.accounts))
    by_owner: Dict[str, int] = {}
    for index, snapshot in enumerate(profile.snapshots[: max(wanted, default=-1) + 1]):
        for account, n_bytes, _ in replay.growths(snapshot):
            _, kind, owner = profile.accounts[account]
            if side_of(kind):
                by_owner[owner] = by_owner.get(owner, 0) + n_bytes
        if index in wanted:
            found[index] = Holdings(snapshot.host, snapshot.device, dict(by_owner))
    return found


def nothing_known(profile: Profile, event: Exhaustion) -> Holdings:
    """Without a snapshot: the totals."""
    at = bisect_right(profile.timeline.time, event.time) - 1
    if at < 0:
        return Holdings(0, 0, {})
    return Holdings(profile.timeline.host[at], profile.timeline.device[at], {})


def _rest(total: Optional[int], free: Optional[int], own: int) -> Optional[int]:
    return None if total is None or free is None else max(0, total - free - own)


def situation_of(profile: Profile, event: Exhaustion, layout: Layout, held: Holdings) -> Situation:
    figures = event.figures
    side = side_of(profile.accounts[event.account].kind) or "device"
    kind = profile.accounts[event.account].kind
    if kind == "pinned" and "device-free" in figures:
        side = "device"  # the driver was asked, and on a board it is one memory
    own = held.host + held.device
    if side == "device":
        free, total = figures.get("device-free"), figures.get("device-total")
        own = held.device if profile.is_discrete else own
        others = _rest(total, free, own)
    else:
        available = profile.system_at("mem-available", event.time)
        swap = profile.system_at("swap-free", event.time) or 0
        total = profile.system_at("mem-total", event.time) or profile.number("mem-total-bytes")
        own = held.host if profile.is_discrete else own
        resident = profile.system_at("process-resident", event.time) or 0
        on_board = 0 if profile.is_discrete else held.device
        others = _rest(total, available, resident + on_board)
        free = None if available is None else available + swap
    pieces = layout.fragmentation
    gathered = max(0, figures.get("vmm-created", 0) - figures.get("vmm-mapped", 0)) if kind == "vmm" else 0
    return Situation(
        side=side,
        asked=max(event.bytes + gathered, figures.get("framework-request", 0)) or None,
        free=free,
        gathered=gathered,
        total=total,
        reserved=pieces.reserved,
        cached=pieces.free,
        holes=pieces.holes,
        largest_hole=pieces.largest_hole,
        returnable=pieces.returnable,
        pool_unused=max(0, figures.get("pool-reserved", 0) - figures.get("pool-used", 0)),
        own=own,
        others=others,
        limit=figures.get("address-space-limit"),
        by_owner=held.by_owner,
    )


def arithmetic(s: Situation) -> List[Tuple[str, int, str]]:
    """The figures that a verdict follows from: label, indented as a part of the one above, bytes, and a remark."""
    where = "on the device" if s.side == "device" else "in memory and swap"
    of_total = f"of {size(s.total)}" if s.total else ""
    rows: List[Tuple[str, Optional[int], str]] = [("asked for", s.asked, ""), (f"free {where}", s.free, of_total)]
    if s.reserved:
        rows.append(("reserved in segments", s.reserved, ""))
        rows.append(("  of it free", s.cached, f"in {count(s.holes, 'hole')}" if s.holes else ""))
        rows.append(("    the largest hole", s.largest_hole, ""))
        rows.append(("    that could be given back", s.returnable, ""))
    if s.gathered:
        rows.insert(1, ("of it had already, in pieces", s.gathered, ""))
    if s.pool_unused:
        rows.append(("unused in stream-ordered pools", s.pool_unused, ""))
    if s.missing and s.missing != s.asked:
        rows.append(("missing", s.missing, ""))
    rows += [("this program holds", s.own, ""), ("everything else holds", s.others, "")]
    return [(label, n_bytes, remark) for label, n_bytes, remark in rows if n_bytes is not None]


# ---- verdict ----
# Why an allocation failed: a word for it, and a sentence or two with its numbers.

# Verdicts.
CACHE_BOUND = "cache"  # memory was free in a cache, and could be given back
FRAGMENTATION = "fragmentation"  # enough was free, in pieces of which none was large enough
OTHERS = "others"  # what else is on the board or the GPU holds more than this program
FULL = "full"
TOO_LARGE = "too large"  # for any run on this machine
LIMIT = "limit"  # one that was set, not the memory
REFUSED = "refused"  # although enough was free
UNKNOWN = "unknown"
# The driver takes device memory by pages of this size.
_DRIVER_PAGE = 2 * MIB
# Of what is reserved.
_FEW_HOLES = 0.1


def _shown(n_bytes: Optional[int]) -> str:
    return "an unknown number of bytes" if n_bytes is None else size(n_bytes)


def outside(profile: Profile, s: Situation) -> str:
    """What `others` are."""
    if s.side == "host" or not profile.is_discrete:
        return "everything else on this machine (other programs, the system, the driver, Valgrind)"
    return "everything else on the GPU (other programs, the driver)"


def _verdict_on_host(profile: Profile, s: Situation) -> Tuple[str, str]:
    asked = s.asked or 0
    if s.limit is not None and (s.free is None or s.free >= asked):
        known = f"{size(s.free)} of memory and swap were available, but " if s.free is not None else ""
        return LIMIT, f"{known}the address space is limited to {size(s.limit)} (ulimit -v), Valgrind's own included."
    if s.free is None:
        return UNKNOWN, "What was free is not known."
    if s.total is not None and asked > s.total + s.free:
        return TOO_LARGE, f"{size(asked)} is more than the machine has ({size(s.total)})."
    if s.free >= asked:
        return (
            REFUSED,
            f"{size(s.free)} of memory and swap were available: a limit, or the system's rules for overcommitment.",
        )
    return _full_or_others(profile, s)


def _full_or_others(profile: Profile, s: Situation) -> Tuple[str, str]:
    missing = _shown(s.missing)
    free = f"{size(s.free or 0)} was free"
    if s.gathered:
        free = f"After {size(s.gathered)} had been got in pieces, {free}"
    if s.cached + s.pool_unused:
        free += f" and {size(s.cached + s.pool_unused)} in caches"
    if s.others is not None and s.own is not None and s.others > s.own:
        return (
            OTHERS,
            f"{free}: {missing} too little. This program holds {size(s.own)}; {outside(profile, s)} {size(s.others)}.",
        )
    return FULL, f"{free}: {missing} too little. This program holds {_shown(s.own)}."


def _nearly_full(s: Situation) -> str:
    """Holes that are few and would have held the block, but not another one, are not what the program suffers from."""
    asked = (s.asked or 0) - s.gathered
    spare = (s.free or 0) + s.cached + s.pool_unused - asked
    if spare >= asked or s.cached > s.reserved * _FEW_HOLES:
        return ""
    return f" In one piece they would have held it and left {size(spare)}: the memory was nearly full."


def _verdict_on_device(profile: Profile, event: Exhaustion, s: Situation) -> Tuple[str, str]:
    where = "GPU" if profile.is_discrete else "board"
    if event.error == 0:
        free = f" The driver was not asked, which had {size(s.free)} free." if s.free else " The driver was not asked."
        return LIMIT, f"The framework keeps to a limit of its own (a fraction of the memory).{free}"
    if s.asked is None:
        free = "" if s.free is None else f" {size(s.free)} was free."
        return (FULL if s.free is not None else UNKNOWN), f"How much the call needs is not known.{free}"
    if s.total is not None and s.asked > s.total:
        return TOO_LARGE, f"{size(s.asked)} is more than the {where} has ({size(s.total)})."
    asked = s.asked - s.gathered
    to_return = s.returnable + s.pool_unused
    in_pieces = f"in {s.holes:,} hole{'' if s.holes == 1 else 's'}, the largest {size(s.largest_hole)}"
    if s.free is not None and s.free >= asked + _DRIVER_PAGE:
        return (
            REFUSED,
            f"The driver said that {size(s.free)} was free, and refused: it found no pages for it, or a limit.",
        )
    if to_return and (s.free or 0) + to_return >= asked:
        kept = f"{size(to_return)} of the cache held nothing and could have been given back"
        return CACHE_BOUND, f"{kept}; {_shown(s.free)} was free besides."
    if s.cached and (s.free or 0) + s.cached + s.pool_unused >= asked:
        free = "" if s.free is None else f", and {size(s.free)} outside"
        return FRAGMENTATION, (
            f"{size(s.cached)} of what is reserved was free{free}, but {in_pieces}. Of it, {size(s.returnable)} could be given back."
            f"{_nearly_full(s)}"
        )
    if s.free is None:
        return UNKNOWN, "What was free on the device is not known."
    return _full_or_others(profile, s)


def verdict_on(profile: Profile, tries: List[Exhaustion], outcome: str, freed: int, s: Situation) -> Tuple[str, str]:
    if outcome == "retried" and s.side == "device":
        if freed:
            return CACHE_BOUND, f"{size(freed)} was given back, and then it succeeded."
        return (
            _verdict_on_device(profile, tries[-1], s)[0],
            "It succeeded at the next try, with nothing freed by this program.",
        )
    return _verdict_on_device(profile, tries[-1], s) if s.side == "device" else _verdict_on_host(profile, s)


# ---- remedies ----
# What would have helped an allocation that failed, by the numbers.

# PyTorch's expandable segments are made of pages of this size, for blocks that are not small.
_EXPANDABLE_PAGE = 20 * MIB
# What max_split_size_mb may usefully be; PyTorch refuses less than 20.
_SPLITS = [n * MIB for n in (20, 32, 64, 128, 256, 512, 1024)]


def is_pytorch(profile: Profile) -> bool:
    return "pytorch" in profile.manifest or any("libc10_cuda" in loaded.path for loaded in profile.objects)


def at_least(version: str, *least: int) -> bool:
    """Whether a version is known to be that or a later one."""
    numbers = [int(number) for number in re.findall(r"\d+", version)[: len(least)]]
    return len(numbers) == len(least) and numbers >= list(least)


def _allocator_config(profile: Profile) -> str:
    return profile.manifest.get("env.PYTORCH_CUDA_ALLOC_CONF", "")


def can_expand_segments(profile: Profile) -> bool:
    """Whether PyTorch's expandable segments were off, in a release that may have them."""
    version = profile.manifest.get("pytorch", "")
    is_on = "expandable_segments:True" in _allocator_config(profile)
    return not is_on and (not version or at_least(version, 2, 1))


def whole_pages(layout: Layout) -> int:
    """Bytes of the holes that could be unmapped, were the segments made of pages."""
    found = 0
    for segment in layout.reserving:
        for part in segment.parts:
            if not part.account:
                begin = -(-part.offset // _EXPANDABLE_PAGE)
                found += max(0, (part.offset + part.bytes) // _EXPANDABLE_PAGE - begin) * _EXPANDABLE_PAGE
    return found


def _split_that_helps(layout: Layout, needed: int) -> Optional[int]:
    """The least max_split_size that would have left `needed` bytes in segments of which nothing is used.

    No block up to that size would have been put into a segment beyond it.
    """
    for split in _SPLITS:

        def is_kept_clean(segment: Segment, split: int = split) -> bool:
            used = [part.bytes for part in segment.parts if part.account]
            return not used or (segment.bytes > split and max(used) <= split)

        # The blocks would have been elsewhere, and taken their place there.
        gain = sum(segment.free for segment in layout.reserving if is_kept_clean(segment))
        if gain >= needed:
            return split
    return None


def _framework_helps(profile: Profile, s: Situation, layout: Layout, verdict: str, outcome: str) -> List[str]:
    helps: List[str] = []
    if s.asked is None or s.free is None:
        return helps
    version = profile.manifest.get("pytorch", "")
    needed = s.asked - s.gathered - s.free
    if verdict == FRAGMENTATION:
        pages = whole_pages(layout)
        if can_expand_segments(profile) and pages >= needed:
            since = "" if version else " (PyTorch 2.1 and later, where the driver has virtual memory management)"
            helps.append(
                f"PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True{since}: {size(pages)} of the holes are whole pages, which"
                " it could have given back."
            )
        split = _split_that_helps(layout, needed) if "max_split_size_mb" not in _allocator_config(profile) else None
        if split:
            helps.append(
                f"PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:{split // MIB}: blocks up to that size would not have been put"
                " into the large segments that they keep from being given back."
            )
    if verdict == CACHE_BOUND and outcome != "retried" and s.returnable:
        helps.append(f"torch.cuda.empty_cache() before: it gives {size(s.returnable)} back.")
    return helps


def lazy_loading_is_off(profile: Profile) -> bool:
    mode = profile.manifest.get("env.CUDA_MODULE_LOADING", "").upper()
    cuda = fact(profile, "cuda")
    is_default = at_least(cuda, 12, 2)
    return at_least(cuda, 11, 7) and (mode == "EAGER" or (not mode and not is_default))


def helps_for(
    profile: Profile, incident_account: int, s: Situation, layout: Layout, verdict: str, outcome: str
) -> List[str]:
    if outcome == "retried":
        return []
    helps: List[str] = []
    needed = None if s.asked is None or s.free is None else max(0, s.asked - s.gathered - s.free)
    if is_pytorch(profile):
        helps += _framework_helps(profile, s, layout, verdict, outcome)
    if needed is None or verdict in (REFUSED, TOO_LARGE, LIMIT, UNKNOWN):
        return helps
    if verdict == CACHE_BOUND and s.pool_unused >= needed:
        helps.append(f"cudaMemPoolTrimTo, or a lower release threshold: pools hold {size(s.pool_unused)} for nothing.")
    workspace = s.by_owner.get("workspace", 0)
    if needed and workspace >= needed:
        helps.append(
            f"a smaller workspace: workspaces hold {size(workspace)} (CUBLAS_WORKSPACE_CONFIG; torch.backends.cudnn.benchmark)."
        )
    elif profile.accounts[incident_account].owner == "workspace":
        helps.append("a smaller workspace: it was one that was asked for (CUBLAS_WORKSPACE_CONFIG).")
    module = s.by_owner.get("module", 0)
    if needed and module >= needed and lazy_loading_is_off(profile):
        helps.append(f"CUDA_MODULE_LOADING=LAZY: the code of kernels holds {size(module)}, and most is seldom used.")
    missing = s.missing or 0
    if verdict in (OTHERS, FULL) and missing and s.others is not None and s.others >= missing:
        helps.append(
            f"less besides this program: {outside(profile, s)} holds {size(s.others)}, and {size(missing)} was missing."
        )
    return helps


# ---- exhaustion ----
# Running out of memory: what failed, why, by which arithmetic, and what would have helped.
#
# A failed allocation and the further tries that follow it are one *incident*. Its verdict is about the last failure: by then
# a caching allocator has given back what it could. Sizes are bytes; None is not known.


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


# ---- savings ----

# What is less, or a smaller part of the pool, is not worth a change.
_LEAST_BYTES = 16 << 20
_LEAST_SHARE = 0.1


def _position(profile: Profile, chosen: Moment) -> Optional[int]:
    """Of a moment among the rows of Profile.blocks."""
    if chosen.snapshot is not None:
        return profile.snapshots[chosen.snapshot].position
    which = main_peak(profile)
    return position_of_peak(profile, which) if which in profile.peaks and profile.blocks.n_rows else None


def _is_worth(n_bytes: int, whole: int) -> bool:
    return n_bytes >= _LEAST_BYTES and n_bytes >= _LEAST_SHARE * whole


def _from_cache(profile: Profile, layout: Layout, whole: int) -> str:
    """A sentence on how a caching allocator would hold less; "" if no way is known that helps."""
    pieces = layout.fragmentation
    if _is_worth(pieces.returnable, whole):
        how = "torch.cuda.empty_cache() before" if is_pytorch(profile) else "its allocator, asked in time,"
        return f"{how} would have given {size(pieces.returnable)} of it back: segments that hold nothing."
    pages = whole_pages(layout)
    if is_pytorch(profile) and can_expand_segments(profile) and _is_worth(pages, whole):
        return f"PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True could give {size(pages)} of it back: whole pages in holes."
    return ""


def savings(profile: Profile, chosen: Moment, table: Ledger) -> List[str]:
    """Sentences, of what would save most first. `table` is the ledger of the moment."""
    found: List[str] = []
    whole = table.total.device_bytes if profile.is_discrete else table.total.bytes
    cached = sum(group.usage.device_bytes for group in table.groups if group.name == "cached")
    if _is_worth(cached, whole):
        position = _position(profile, chosen)
        layout = None if position is None else layout_at(profile, position)
        is_known = layout is not None and is_placed(profile, layout, chosen.composition)
        way = _from_cache(profile, layout, whole) if layout is not None and is_known else ""
        if way:
            of = "its device memory" if profile.is_discrete else "all it held"
            found.append(f"{size(cached)} ({percent(cached, whole)} of {of}) are cached and not in use; {way}")
    module = sum(row.bytes for row in table.owners if row.name == "module")
    if _is_worth(module, table.total.bytes) and lazy_loading_is_off(profile):
        found.append(f"CUDA_MODULE_LOADING=LAZY: the code of kernels holds {size(module)}, and most is seldom used.")
    return found
