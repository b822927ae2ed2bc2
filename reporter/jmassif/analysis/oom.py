# SPDX-License-Identifier: GPL-2.0-or-later
"""Allocations that failed for lack of memory: the figures at the failure, a verdict, and actions with the bytes that they return.

A failed allocation and the tries that follow it are one *incident*. Its verdict is about the last failure: by then a caching
allocator has given back what it could. Sizes are bytes; None is unknown. `outcome_of` has the end of any run, advice.py the actions
for one that did not fail. Sentences stand in render/failures.py and render/summary.py.
"""

import re
from bisect import bisect_right
from itertools import islice
from typing import Callable, Dict, List, NamedTuple, Optional, Set, Tuple

from jmassif.analysis.aggregate import Usage, series
from jmassif.analysis.device_memory import Layout, layouts, position_of_peak
from jmassif.analysis.moments import Moment, SelectionError, main_peak, select
from jmassif.attribution.names import Names
from jmassif.model.records import Exhaustion, side_of
from jmassif.model.run import Profile
from jmassif.model.run_info import fact, how_ended, is_pytorch, was_short

MIB = 1 << 20

# Verdicts.
CACHE_BOUND = "cache"  # free memory in a cache could be given back
FRAGMENTATION = "fragmentation"  # enough was free, in pieces of which none was large enough
PAGE_CACHE = "page cache"  # as much was in cached files, which the driver counted as in use
OTHERS = "others"  # other programs hold more than this one
FULL = "full"
TOO_LARGE = "too large"  # for any run on this machine
LIMIT = "limit"  # one that was set, not the memory
REFUSED = "refused"  # although enough was free
UNKNOWN = "unknown"

# The driver takes device memory by pages of this size.
_DRIVER_PAGE = 2 * MIB
# PyTorch's expandable segments are made of pages of this size, for blocks that are not small.
_EXPANDABLE_PAGE = 20 * MIB
# Useful values of max_split_size_mb; PyTorch refuses less than 20.
_SPLITS = [n * MIB for n in (20, 32, 64, 128, 256, 512, 1024)]
# Roles of tensors that scale with the input.
_SCALING_ROLES = ("activation", "input", "temporary")


class Hint(NamedTuple):
    """An action that the trace proves, and the bytes that it returns."""

    # empty-cache, expandable-segments, max-split-size, trim-pools, smaller-workspace, lazy-loading, smaller-batch,
    # drop-page-cache, smaller-cma, stop-others, raise-limit (to `setting` bytes at least), trim-heap
    action: str
    bytes: int
    line: str = ""  # to act at or before; safe to show
    setting: int = 0  # bytes of max_split_size; of a smaller batch per mille of the one that failed
    variable: str = ""  # of the environment, for the setting
    value: str = ""  # of the variable: the setting, and those that it had
    needs: str = ""  # release from which the setting is known, where the program's is not on record
    is_trial: bool = False  # it may fail on this machine, or return less
    # Least bytes in use at some time before the line first allocated: the peak is no lower. 0: unknown.
    held_before: int = 0


class Situation(NamedTuple):
    """The figures at the last failure."""

    side: str  # memory space of the request
    asked: Optional[int]
    free: Optional[int]  # of the device, as the driver reported, or `granted`; of the machine, for host memory
    reported: Optional[int]  # as `free`, whatever NvMap grants
    gathered: int  # of the request: allocated already, in chunks
    total: Optional[int]
    reserved: int  # by segments on the device
    cached: int  # of that, in no block
    holes: int
    largest_hole: int
    returnable: int  # in empty segments
    pool_unused: int  # reserved by stream-ordered pools beyond their blocks
    own: Optional[int]  # of this program, in that space; in both where they share memory
    others: Optional[int]  # everything else that is not free
    limit: Optional[int]  # of the address space
    granted: Optional[int]  # by NvMap to one request, where that is less than the request
    available: Optional[int]  # of the machine
    cma_free: int  # of that, kept from NvMap
    cma_grants: int  # NvMap would grant so much more without CMA
    page_cache: int  # that the driver counted as in use
    by_owner: Dict[str, int]  # all of this program
    scaling: int  # bytes of tensors that scale with the input, by their roles

    @property
    def missing(self) -> Optional[int]:
        """The part of the request that was neither free nor returnable."""
        if self.asked is None or self.free is None:
            return None
        return max(0, self.asked - self.gathered - self.free - self.returnable - self.pool_unused)


class Incident(NamedTuple):
    tries: List[Exhaustion]  # the failed ones, at least one
    call: str  # function of the program's that failed
    line: str  # Python line or site that asked; safe to show
    outcome: str  # "retried": the next try succeeded; "raised": the framework gave up; ""
    freed: int  # bytes of the device given back since the first try
    situation: Situation
    verdict: str
    hints: List[Hint]

    @property
    def last(self) -> Exhaustion:
        return self.tries[-1]

    @property
    def is_resolved(self) -> bool:
        return self.outcome == "retried"


# ---- the figures -----------------------------------------------------------------------------


# By owner, and whether the memory scales with the input.
_Held = Dict[Tuple[str, bool], Usage]


def _held_at(run: Profile, wanted: Set[int]) -> Dict[Optional[int], _Held]:
    """By index of the snapshot. One pass for all of them."""

    def owner_and_scales(account: int) -> Tuple[str, bool]:
        return run.accounts.owner(account), run.roles.get(account) in _SCALING_ROLES

    snapshots = zip(range(max(wanted, default=-1) + 1), series(run, owner_and_scales))
    return {index: usages for index, (_, usages) in snapshots if index in wanted}


def _totals_at(run: Profile, event: Exhaustion) -> Tuple[int, int]:
    """(host, device) bytes."""
    if event.snapshot is not None:
        return run.snapshots[event.snapshot].host, run.snapshots[event.snapshot].device
    at = bisect_right(run.timeline.time, event.time) - 1
    return (run.timeline.host[at], run.timeline.device[at]) if at >= 0 else (0, 0)


def _granted(run: Profile, left: int) -> Optional[int]:
    """The most that NvMap grants to one request, of what is available without CMA; None where its check is not known.

    From the releases' public sources (system_heap_free_mem): r35 takes off 1/16 for page colouring, r36 nothing, and from 36.4.7
    on a thousandth. A Thor's device memory is the resource manager's.
    """
    release = run.manifest.get("l4t", "")
    if not at_least(release, 35) or "Thor" in run.manifest.get("board", "") or run.is_discrete:
        return None
    is_new = at_least(release, 36, 4, 7) or at_least(release, 36, 5)
    return left - (left // 1000 if is_new else 0 if at_least(release, 36) else left // 16)


def _page_cache(figure: Callable[[str], int], free: int) -> int:
    """Cached bytes that the kernel can drop, without the program's own files, and that the driver did not count as free."""
    available = figure("mem-available")
    droppable = min(figure("cached") + figure("buffers") + figure("slab-reclaimable"), available - figure("mem-free"))
    return max(0, min(droppable - figure("process-files"), available - free))


def _situation(run: Profile, event: Exhaustion, layout: Layout, held: _Held) -> Situation:
    figures = event.figures
    kind = run.accounts[event.account].kind
    # The driver is asked for pinned memory, and on a board it is one memory.
    side = "device" if kind == "pinned" and "device-free" in figures else side_of(kind) or "device"
    host, device = _totals_at(run, event)
    own = host + device
    if run.is_discrete:
        own = device if side == "device" else host
    if side == "device":
        available = free = figures.get("device-free")
        total, counted = figures.get("device-total"), own
    else:
        available = run.system_at("mem-available", event.time)
        free = None if available is None else available + (run.system_at("swap-free", event.time) or 0)
        total = run.system_at("mem-total", event.time) or run.number("mem-total-bytes")
        counted = (run.system_at("process-resident", event.time) or 0) + (0 if run.is_discrete else device)
    pieces = layout.fragmentation
    by_owner: Dict[str, int] = {}
    # The machine's figures come with the snapshot of the failure.
    sampled = event.time if event.snapshot is None else run.snapshots[event.snapshot].time

    def figure(name: str) -> int:
        return run.system_at(name, sampled) or 0

    # A device of another size has other chips, as a simulated one.
    is_same = total is None or abs(total - figure("mem-total")) <= total // 10
    is_shared = side == "device" and not run.is_discrete and figure("mem-available") > 0 and is_same
    page_cache = _page_cache(figure, free) if is_shared and free is not None else 0
    for (owner, _), usage in held.items():
        by_owner[owner] = by_owner.get(owner, 0) + usage.bytes
    gathered = max(0, figures.get("vmm-created", 0) - figures.get("vmm-mapped", 0)) if kind == "vmm" else 0
    asked = max(event.bytes + gathered, figures.get("framework-request", 0)) or None
    granted = without_cma = None
    if is_shared and event.error and kind != "vmm":
        granted = _granted(run, max(0, figure("mem-available") - figure("cma-free")))
        without_cma = _granted(run, figure("mem-available"))
    if granted is not None and asked is not None and granted < asked:
        free = granted
    else:
        granted = None
    return Situation(
        side=side,
        asked=asked,
        free=free,
        reported=available,
        gathered=gathered,
        total=total,
        reserved=pieces.reserved,
        cached=pieces.free,
        holes=pieces.holes,
        largest_hole=pieces.largest_hole,
        returnable=pieces.returnable,
        pool_unused=max(0, figures.get("pool-reserved", 0) - figures.get("pool-used", 0)),
        own=own,
        others=None if total is None or available is None else max(0, total - available - counted - page_cache),
        limit=figures.get("address-space-limit"),
        granted=granted,
        available=figure("mem-available") or None,
        cma_free=figure("cma-free"),
        cma_grants=(without_cma or 0) - (granted or 0),
        page_cache=page_cache,
        by_owner=by_owner,
        scaling=sum(usage.bytes for (_, scales), usage in held.items() if scales),
    )


# ---- verdicts --------------------------------------------------------------------------------


def _full_or_others(s: Situation) -> str:
    if s.granted is None and s.missing and s.page_cache >= s.missing:
        return PAGE_CACHE
    return OTHERS if s.others is not None and s.own is not None and s.others > s.own else FULL


def _verdict_on_host(s: Situation) -> str:
    asked = s.asked or 0
    if s.limit is not None and (s.free is None or s.free >= asked):
        return LIMIT
    if s.free is None:
        return UNKNOWN
    if s.total is not None and asked > s.total + s.free:
        return TOO_LARGE
    return REFUSED if s.free >= asked else _full_or_others(s)


def _verdict(event: Exhaustion, freed: int, s: Situation) -> str:
    if s.side == "host":
        return _verdict_on_host(s)
    if event.outcome == "retried" and freed:
        return CACHE_BOUND
    if event.error == 0:
        return LIMIT
    if s.asked is None:
        return FULL if s.free is not None else UNKNOWN
    if s.total is not None and s.asked > s.total:
        return TOO_LARGE
    asked, free = s.asked - s.gathered, s.free or 0
    if s.granted is None and free >= asked + _DRIVER_PAGE:
        return REFUSED
    if s.returnable + s.pool_unused and free + s.returnable + s.pool_unused >= asked:
        return CACHE_BOUND
    if s.cached and free + s.cached + s.pool_unused >= asked:
        return FRAGMENTATION
    if s.granted is not None and (s.available or 0) >= asked:
        return LIMIT
    return UNKNOWN if s.free is None else _full_or_others(s)


# ---- actions ---------------------------------------------------------------------------------


def at_least(version: str, *least: int) -> bool:
    """True if the version is known and not older."""
    numbers = [int(number) for number in re.findall(r"\d+", version)[: len(least)]]
    return len(numbers) == len(least) and numbers >= list(least)


# PyTorch's variables for its allocator. 2.9 knows the new one too, but leaves the allocator of CUDA at its defaults.
_VARIABLE, _OLD_VARIABLE = "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"


def allocator_config(run: Profile) -> Tuple[str, str]:
    """The variable that a setting belongs into, and the settings in force."""
    new, old = (run.manifest.get(f"env.{name}", "") for name in (_VARIABLE, _OLD_VARIABLE))
    version = run.manifest.get("pytorch", "")
    if not version:
        return _VARIABLE if new else _OLD_VARIABLE, ",".join(filter(None, (new, old)))
    return (_VARIABLE, new or old) if at_least(version, 2, 10) else (_OLD_VARIABLE, old)


def _with_setting(settings: str, setting: str) -> str:
    """A variable's whole value: to set it drops the settings that it had."""
    parts = re.split(r",(?![^\[]*\])", settings.replace(" ", ""))  # a value may be a list, in brackets
    key = setting.partition(":")[0]
    return ",".join([part for part in parts if part and part.partition(":")[0] != key] + [setting])


def expand_segments(run: Profile, pages: int) -> List[Hint]:
    """The hint on PyTorch's expandable segments, if they were off and both release and device may have them."""
    version = run.manifest.get("pytorch", "")
    variable, settings = allocator_config(run)
    is_missing = run.manifest.get("cuda-vmm") == "no" or (version and not at_least(version, 2, 1))
    if is_missing or "expandable_segments:True" in settings:
        return []
    value = _with_setting(settings, "expandable_segments:True")
    needs = "" if version else "PyTorch 2.1"
    return [Hint("expandable-segments", pages, "", 0, variable, value, needs, is_trial=not run.is_discrete)]


def whole_pages(layout: Layout) -> int:
    """Bytes of the holes that could be unmapped, were the segments made of pages."""
    page = _EXPANDABLE_PAGE
    holes = [part for segment in layout.reserving for part in segment.parts if not part.account]
    return sum(max(0, (hole.offset + hole.bytes) // page - -(-hole.offset // page)) * page for hole in holes)


def _split_that_helps(layout: Layout, needed: int) -> Optional[int]:
    """The least max_split_size that would have left `needed` bytes in empty segments.

    No block up to that size would have been put into a segment beyond it: the blocks would have been elsewhere, and taken
    the place of holes there.
    """
    largest = [max((part.bytes for part in each.parts if part.account), default=0) for each in layout.reserving]
    for split in _SPLITS:
        emptied = (
            segment.free
            for segment, block in zip(layout.reserving, largest)
            if not block or segment.bytes > split >= block
        )
        if sum(emptied) >= needed:
            return split
    return None


def lazy_loading_is_off(run: Profile) -> bool:
    mode = run.manifest.get("env.CUDA_MODULE_LOADING", "").upper()
    cuda = fact(run, "cuda")
    is_default = at_least(cuda, 12, 2)
    return at_least(cuda, 11, 7) and (mode == "EAGER" or (not mode and not is_default))


def _hints(run: Profile, account: int, s: Situation, layout: Layout, verdict: str) -> List[Hint]:
    if s.asked is None or s.free is None:
        return []
    needed = max(0, s.asked - s.gathered - s.free)
    hints: List[Hint] = []
    if verdict == FRAGMENTATION and is_pytorch(run):
        pages = whole_pages(layout)
        if pages >= needed:
            hints += expand_segments(run, pages)
        variable, settings = allocator_config(run)
        split = _split_that_helps(layout, needed) if "max_split_size_mb" not in settings else None
        if split:
            value = _with_setting(settings, f"max_split_size_mb:{split // MIB}")
            hints.append(Hint("max-split-size", needed, setting=split, variable=variable, value=value))
    if verdict == CACHE_BOUND and s.returnable and is_pytorch(run):
        hints.append(Hint("empty-cache", s.returnable))
    if verdict == LIMIT and s.side == "host" and s.limit:
        hints.append(Hint("raise-limit", s.asked, setting=s.limit + s.asked))
    missing = s.missing or 0
    is_nvmaps = verdict == LIMIT and s.granted is not None
    if is_nvmaps and s.cma_grants >= missing:
        hints.append(Hint("smaller-cma", s.cma_grants))
    if verdict in (REFUSED, TOO_LARGE, UNKNOWN) or (verdict == LIMIT and not is_nvmaps):
        return hints
    if verdict == CACHE_BOUND and s.pool_unused >= needed:
        hints.append(Hint("trim-pools", s.pool_unused))
    workspace, module = s.by_owner.get("workspace", 0), s.by_owner.get("module", 0)
    if needed and workspace >= needed:
        hints.append(Hint("smaller-workspace", workspace))
    elif run.accounts.owner(account) == "workspace":
        hints.append(Hint("smaller-workspace", s.asked))
    if needed and module >= needed and lazy_loading_is_off(run):
        hints.append(Hint("lazy-loading", module))
    if missing and (is_nvmaps or verdict in (PAGE_CACHE, OTHERS, FULL)):
        # By so much tensors that scale with the input, and the failed request, had to be smaller.
        scaling = s.scaling + s.asked - s.gathered
        if s.side == "device" and s.scaling and missing < scaling:
            hints.append(Hint("smaller-batch", missing, setting=1000 * (scaling - missing) // scaling))
        if s.granted is None and s.page_cache >= missing:
            hints.append(Hint("drop-page-cache", s.page_cache, is_trial=True))
        if s.others is not None and s.others >= missing:
            hints.append(Hint("stop-others", s.others))
    return hints


# ---- incidents -------------------------------------------------------------------------------

NO_MEMORY = 2  # CUDA's error
_CUDA = re.compile(r"cu(?:da)?[A-Z]")  # functions of the runtime and the driver
# The runtime's functions that ask the driver for memory.
_RUNTIME_CALL = re.compile(r"cuda(?:Malloc\w*|HostAlloc|HostRegister|Free)")
# A few seconds' work; a recorder writes a few hundred failures at most.
_MOST_INCIDENTS = 100
_MOST_INSIDE = 12  # frames of the runtime around the driver's call


def call_of(run: Profile, event: Exhaustion) -> str:
    """The function that the program called: that of the runtime around the driver's, where it was one."""
    inside = islice(run.stack(run.accounts[event.account].node), _MOST_INSIDE if event.api.startswith("cu") else 0)
    functions = [run.frame(frame).function for frame in inside]
    return next(filter(_RUNTIME_CALL.fullmatch, reversed(functions)), event.api)


def line_of(run: Profile, names: Names, account: int) -> str:
    """ "train.py:147"; without a Python line the site."""
    line = names.charged(account)
    if line:
        return f"{names.file(line)}:{run.frame(line).line}"
    site = names.site_id(account)
    return names.frame(site) if site else ""


def chains_of(run: Profile) -> List[List[Exhaustion]]:
    """The tries of each incident."""
    chain_of: Dict[int, List[Exhaustion]] = {}
    chains: List[List[Exhaustion]] = []
    for event in run.exhaustions.values():
        chain = chain_of[event.id] = chain_of.get(event.again, [])
        if not chain:
            chains.append(chain)
        chain.append(event)
    return chains


def n_failures(run: Profile) -> int:
    """Failed calls, and failed requests for memory: each is one, with its retries and the calls inside it."""
    events = run.exhaustions.values()
    n_requests = max(run.counters.get("out-of-memory", 0), len(events))
    calls = sum(
        n for (api, code), n in run.failures.items() if not (n_requests and code == NO_MEMORY and _CUDA.match(api))
    )
    # Requests to the heap that no memory would satisfy have no events.
    n_of_heap = n_requests - sum(run.accounts.kind(event.account) != "heap" for event in events)
    calls += max(0, run.counters.get("heap-allocation-failed", 0) - n_of_heap)
    return calls + n_requests - len(events) + len(chains_of(run))


def _positions(chain: List[Exhaustion]) -> Tuple[int, int, int]:
    """Of the first failure, of the last, and of what came after it."""
    last = chain[-1]
    return chain[0].position, last.position, last.outcome_position if last.outcome == "retried" else last.position


def incidents_of(run: Profile, names: Names) -> List[Incident]:
    """In order of their first failures, computed once; of very many the last ones."""
    return names.once(_incidents)


def _incidents(run: Profile, names: Names) -> List[Incident]:
    chains = chains_of(run)[-_MOST_INCIDENTS:]
    held = _held_at(run, {chain[-1].snapshot for chain in chains if chain[-1].snapshot is not None})
    positions = sorted({position for chain in chains for position in _positions(chain)})
    layout_of = dict(zip(positions, layouts(run, positions)))
    found = []
    for chain in chains:
        event = chain[-1]
        before, layout, after = (layout_of[position] for position in _positions(chain))
        left = {row for segment in after.segments for row, _ in segment.made}
        freed = sum(size for segment in before.segments for row, size in segment.made if row not in left)
        s = _situation(run, event, layout, held.get(event.snapshot, {}))
        verdict = _verdict(event, freed, s)
        hints = [] if event.outcome == "retried" else _hints(run, event.account, s, layout, verdict)
        call, line = call_of(run, chain[0]), line_of(run, names, event.account)
        found.append(Incident(chain, call, line, event.outcome, freed, s, verdict, hints))
    return found


# ---- moments of device memory ----------------------------------------------------------------


def position_of(run: Profile, at: Moment, which: str) -> int:
    """Of a snapshot or of that peak, among the rows of Profile.blocks."""
    if at.snapshot is not None:
        return run.snapshots[at.snapshot].position
    return position_of_peak(run, which) if which in run.peaks else run.blocks.n_rows


def select_device(run: Profile, names: Names, number: str, selector: Optional[str]) -> Tuple[Moment, int]:
    """The failed allocation with this number; without one the moment of `selector`, by default the device's peak.

    And the rows of Profile.blocks before it. Without a snapshot of a failure its composition is empty. Raises SelectionError.
    """
    if not number:
        selector = selector or "peak-device"
        at = select(run, selector)
        return at, position_of(run, at, selector[len("peak-") :] or main_peak(run))
    found = incidents_of(run, names)
    if not number.isdecimal() or not 1 <= int(number) <= len(found):
        has = f"1 to {len(found)}" if found else "none"
        raise SelectionError(f"--segments=N needs a failed allocation; this trace has {has}")
    event = found[int(number) - 1].last
    composition = {} if event.snapshot is None else run.composition(event.snapshot)
    return Moment(f"failed allocation {number}", event.time, composition, event.snapshot), event.position


# ---- the end of the run ----------------------------------------------------------------------

# Severities.
ALARM = "alarm"  # the run died of it, or may have
WARNING = "warning"
NOTE = "note"


class Outcome(NamedTuple):
    end: str  # as run_info.how_ended
    code: int  # exit status, or the signal's number; 0 where unknown
    time: int  # of the end or, where that is not on record, the last that is known
    severity: str  # ALARM, WARNING or NOTE
    # Number of the last incident that was not resolved, from 1 on; of a Python line if there is one.
    failed: Optional[int]
    n_failed: int  # incidents that were not resolved
    n_recovered: int  # incidents with a retry that succeeded
    is_fatal: bool  # the run failed after memory ran out
    short_at: Optional[int]  # when the machine's memory first ran short
    available: Optional[int]  # bytes of the machine at the end
    truncation: str  # where the trace is cut off; from the reader
    stopped: str  # why recording stopped early; from the trace


def outcome_of(run: Profile, incidents: List[Incident]) -> Outcome:
    unresolved = [number for number, each in enumerate(incidents, 1) if not each.is_resolved]
    # An interpreter that dies of one failure, and prints where, asks once more outside of all lines.
    nodes = {number: run.accounts[incidents[number - 1].last.account].node for number in unresolved}
    of_lines = [n for n in unresolved if not run.python_frames.isdisjoint(run.stack(nodes[n]))]
    end, code = how_ended(run), run.end.code if run.end else 0
    has_died = (run.end is not None and run.end.reason == "signal") or not (run.is_complete or run.is_running)
    severity = NOTE
    if (has_died and (unresolved or not run.was_dismissed)) or (unresolved and code):
        severity = ALARM
    elif unresolved or code or run.manifest.get("stopped"):
        severity = WARNING
    return Outcome(
        end=end,
        code=code,
        time=run.last_time,
        severity=severity,
        failed=(of_lines or unresolved)[-1] if unresolved else None,
        n_failed=len(unresolved),
        n_recovered=len(incidents) - len(unresolved),
        is_fatal=bool(unresolved) and severity == ALARM,
        short_at=was_short(run),
        available=run.system_at("mem-available", run.last_time),
        truncation=run.truncation or "",
        stopped=run.manifest.get("stopped", ""),
    )
