# SPDX-License-Identifier: GPL-2.0-or-later
"""The served runs: their states and their page, kept up to date, and each branch and block at any snapshot.

Two threads read each trace. One reads totals alone, which costs little, and publishes them. The other has the whole model, makes
the page again when there are new snapshots, which takes seconds for a large run, and answers the page's queries.
"""

import threading
import time
from array import array
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from jmassif.analysis.calltree import Held, StackTree
from jmassif.analysis.processes import join
from jmassif.attribution.names import describe
from jmassif.html.cells import Code, shown
from jmassif.html.data import run_key
from jmassif.html.page import page
from jmassif.live.run import Family, Followed, LiveRun, TailBuilder
from jmassif.model.records import Composition, side_of
from jmassif.model.run import Profile
from jmassif.reader.tokens import TraceError
from jmassif.units import moment, printable

_LOOK_SECONDS = 0.25
# Making pages takes time from a program on the same machine: at most this share, and none after so long without a request.
_SHARE = 0.25
_WANTED_SECONDS = 20.0
MOST_ROWS = 200
_MOMENTS_KEPT = 3
PEAK = "peak-"


class ServedRun(Followed):
    """Raises TraceError when it is made, and from poll()."""

    def new_model(self, profile: Profile) -> TailBuilder:
        self._branches: Optional[StackTree] = None
        self._held: Dict[Tuple[str, int], Held] = {}
        return super().new_model(profile)

    def poll(self) -> bool:
        """Reads all that there is; whether anything is new."""
        is_news = super().poll()
        while not self.follower.is_all:
            is_news = super().poll() or is_news
        if is_news:
            self._held.clear()
            self.profile.forget(0)  # of accounts that are new, too
        return is_news

    @property
    def branches(self) -> StackTree:
        if self._branches is None or self._branches.n_nodes != len(self.profile.node_parent):
            self._branches = StackTree(self.profile)
            self._held.clear()
        return self._branches

    def _moment(self, at: str) -> Tuple[Composition, int, int]:
        """The composition, the number of block records, and the time. Raises KeyError."""
        profile = self.profile
        if at.startswith(PEAK):
            peak = profile.peaks[at[len(PEAK) :]]
            return profile.peak_composition(peak.which), profile.snapshots[peak.snapshot].position, peak.time
        for index, snapshot in enumerate(profile.snapshots):
            if str(snapshot.id) == at:
                return profile.composition(index), snapshot.position, snapshot.time
        raise KeyError(at)

    def held(self, at: str) -> Held:
        """At a moment: "peak-total", or the id of a snapshot. Raises KeyError."""
        branches = self.branches
        key = (at, len(self.profile.snapshots))
        if key not in self._held:
            while len(self._held) >= _MOMENTS_KEPT:
                del self._held[next(iter(self._held))]
            self._held[key] = branches.at(self._moment(at)[0])
        return self._held[key]

    def position(self, at: str) -> Tuple[int, int]:
        """The number of records of blocks before a moment, and its time. Raises KeyError."""
        _, position, time = self._moment(at)
        return position, time


class NotThere(Exception):
    """There is no such process, place or moment."""


def _now(run: LiveRun) -> Dict[str, Any]:
    """The present figures of a run."""
    now = run.now()
    return {
        "pid": run.pid,
        "state": printable(run.state),
        "is_running": run.is_running,
        "when": moment(now.time, run.profile.time_unit),
        "time": now.time,
        "host": now.host,
        "device": now.device,
        "peak": now.peak,
        "snapshots": len(run.profile.snapshots),
    }


class Library:
    """Raises TraceError for a name that cannot be served."""

    def __init__(self, names: Sequence[str], directories: Optional[Sequence[str]]) -> None:
        self._directories = directories
        self._family = Family(names, has_sums=False)
        self._runs: Dict[str, ServedRun] = {}
        self._lock = threading.Lock()  # of the runs, and of queries
        self._changed = threading.Condition()
        self._page = b""
        self._version = 0  # of the page
        self._state: Dict[str, Any] = {}
        self._n_states = 0
        self._is_closed = threading.Event()
        self._is_news = threading.Event()
        self._is_wanted = threading.Event()
        self._last_wanted = 0.0
        self._family.settle()
        self._make_page()
        self._publish()

    def start(self) -> None:
        for work in (self._follow, self._renew):
            threading.Thread(target=work, daemon=True).start()

    def close(self) -> None:
        self._is_closed.set()
        self._is_news.set()
        self._is_wanted.set()
        with self._changed:
            self._changed.notify_all()

    # ---- states --------------------------------------------------------------------------------------

    def _follow(self) -> None:
        while not self._is_closed.wait(_LOOK_SECONDS):
            try:
                self._family.poll(_LOOK_SECONDS)
            except TraceError as error:
                self._publish(str(error))
                return
            self._publish()

    def _publish(self, problem: str = "") -> None:
        processes = [_now(run) for run in self._family.runs]
        with self._changed:
            state = {"version": self._version, "processes": processes, "problem": printable(problem)}
            if state == self._state:
                return
            is_news = [self._state.get(key) for key in ("processes", "problem")] != [processes, state["problem"]]
            self._state = state
            self._n_states += 1
            self._changed.notify_all()
        if is_news:
            self._is_news.set()

    def wait(self, n_seen: int, seconds: float) -> Tuple[int, Optional[Dict[str, Any]]]:
        """The next state after so many, and their number; None: there was none for so long."""
        self.want()
        with self._changed:
            self._changed.wait_for(lambda: self._n_states != n_seen or self._is_closed.is_set(), seconds)
            return self._n_states, self._state if self._n_states != n_seen else None

    @property
    def is_closed(self) -> bool:
        return self._is_closed.is_set()

    # ---- the page ------------------------------------------------------------------------------------

    def _renew(self) -> None:
        while True:
            if time.monotonic() - self._last_wanted > _WANTED_SECONDS and not self._is_closed.is_set():
                self._is_wanted.clear()
            self._is_wanted.wait()
            if not self._is_news.wait(_WANTED_SECONDS):
                continue
            self._is_news.clear()
            if self._is_closed.is_set():
                return
            begin = time.monotonic()
            try:
                is_new = self._make_page()
            except TraceError as error:
                self._publish(str(error))
                return
            if is_new:
                self._publish()
            took = time.monotonic() - begin
            if self._is_closed.wait(took * (1 - _SHARE) / _SHARE):
                return

    def _make_page(self) -> bool:
        """Returns whether anything is new."""
        with self._lock:
            is_news = False
            for run in list(self._family.runs):
                try:
                    if run.name not in self._runs:
                        self._runs[run.name] = ServedRun(run.name)
                        is_news = True
                    is_news = self._runs[run.name].poll() or is_news
                    profile = self._runs[run.name].profile
                    is_news = is_news or profile.is_running != run.is_running
                    profile.is_running = run.is_running
                except TraceError as error:
                    self._runs.pop(run.name, None)
                    if not self._runs and len(self._family.runs) < 2:
                        raise
                    self._family.lose(run, str(error))
            if not is_news and self._page:
                return False
            job = join([(name, run.profile) for name, run in self._runs.items()])
            text = "\n".join(page(job, self._directories, True))
        with self._changed:
            self._page = text.encode("utf-8", "backslashreplace")
            self._version += 1
        return True

    @property
    def page(self) -> bytes:
        self.want()
        return self._page

    def want(self) -> None:
        """A client is there: go on making pages for a while."""
        self._last_wanted = time.monotonic()
        self._is_wanted.set()

    # ---- queries -------------------------------------------------------------------------------------

    def _run(self, key: str) -> ServedRun:
        for run in self._runs.values():
            if run_key(run.profile) == key:
                return run
        raise NotThere("process")

    def _query(self, key: str, at: str, node: int, answer: Callable[[ServedRun], Dict[str, Any]]) -> Dict[str, Any]:
        self.want()
        with self._lock:
            run = self._run(key)
            if not 0 <= node < run.branches.n_nodes:
                raise NotThere("place")
            try:
                found = answer(run)
            except KeyError:
                raise NotThere("moment")
            found["stack"] = [_label(run.profile, frame) for frame in list(run.profile.stack(node))[::-1]]
            return found

    def children(self, key: str, at: str, node: int, first: int) -> Dict[str, Any]:
        """The callees of a node with any memory, from the `first` on; see docs/page.md. Raises NotThere."""

        def answer(run: ServedRun) -> Dict[str, Any]:
            held = run.held(at)
            found = run.branches.children(held, node)
            code = Code(run.profile, self._directories)
            rows = []
            for child in found[first : first + MOST_ROWS]:
                frame = run.profile.node_frame[child]
                rows.append(
                    {
                        "node": child,
                        "name": _label(run.profile, frame),
                        "type": run.profile.frames[frame][0],
                        "around": code.around(run.profile.frame(frame)),
                        "children": len(run.branches.children(held, child)),
                        **_figures(held.all, child),
                    }
                )
            return {"rows": rows, "n": len(found), "all": _figures(held.all, node), "own": _figures(held.own, node)}

        return self._query(key, at, node, answer)

    def blocks(self, key: str, at: str, node: int, first: int) -> Dict[str, Any]:
        """The blocks of a node and of all below it. Raises NotThere."""

        def answer(run: ServedRun) -> Dict[str, Any]:
            profile = run.profile
            found = run.branches.blocks(node, *run.position(at))
            rows: List[Dict[str, Any]] = []
            for block in found[first : first + MOST_ROWS]:
                _, kind, owner = profile.accounts[block.account]
                row = {"begin": block.begin, "address": f"{block.address:x}", "bytes": block.bytes}
                rows.append({**row, "kind": kind, "owner": owner, "side": side_of(kind) or ""})
            return {"rows": rows, "n": len(found), "bytes": sum(block.bytes for block in found)}

        return self._query(key, at, node, answer)


def _label(profile: Profile, frame: int) -> str:
    return shown(describe(profile.frame(frame))) if frame else "all"


def _figures(columns: "List[array[int]]", node: int) -> Dict[str, int]:
    return dict(zip(("host", "device", "blocks"), (column[node] for column in columns)))
