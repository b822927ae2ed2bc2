# SPDX-License-Identifier: GPL-2.0-or-later
"""A run in an SQLite database, which may hold any number of other runs: made for SQL over a fleet.

A run that is already there is replaced, in one transaction, so a trace may be added again at any time, also once it has
grown. docs/formats.md describes the tables; VERSION, the database's user_version, grows when a query would break.

Balances are stored where they change, as in the trace: a row of `balance` holds from its snapshot to the one `until` which it
is another, or to the end. The view `held` has them at every snapshot.
"""

import os
from itertools import repeat
from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, List, Optional, Tuple

from jmassif.model.kinds import PEAKS, counted_blocks, side_of
from jmassif.model.profile import Profile
from jmassif.model.records import Composition
from jmassif.questions.exhaustion import Incident, call, incidents
from jmassif.questions.facts import jetpack
from jmassif.questions.identity import run_id
from jmassif.questions.scopes import growth_by_side
from jmassif.questions.series import Balance, series
from jmassif.units import unicode_text
from jmassif.version import __version__
from jmassif.whose.names import Names
from jmassif.whose.views import naming
from jmassif.writers.view import FormatError, View

if TYPE_CHECKING:
    import sqlite3

VERSION = 1
# "jmsf": by it file(1) and this module tell the database from others.
APPLICATION_ID = 0x6A6D7366

_CACHE_KIB = 16 << 10
_LARGEST = (1 << 63) - 1

# Every table but `run` begins with the run's number, so a run's rows lie together and are replaced together.
_SCHEMA = """
CREATE TABLE run (
    run INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, host TEXT, board TEXT, l4t TEXT, jetpack TEXT, command TEXT,
    pid INTEGER, start TEXT, start_unix_ms INTEGER, time_unit TEXT, memory TEXT, is_complete INTEGER, truncation TEXT,
    end_time INTEGER, end_reason TEXT, end_code INTEGER, peak_total INTEGER, peak_host INTEGER, peak_device INTEGER,
    detail TEXT, jmassif TEXT);
CREATE TABLE manifest (run INTEGER, key TEXT, value TEXT, PRIMARY KEY (run, key)) WITHOUT ROWID;
CREATE TABLE owner (run INTEGER, owner TEXT, owner_group TEXT, PRIMARY KEY (run, owner)) WITHOUT ROWID;
CREATE TABLE snapshot (
    run INTEGER, snapshot INTEGER, time INTEGER, reason TEXT, host INTEGER, device INTEGER,
    PRIMARY KEY (run, snapshot)) WITHOUT ROWID;
CREATE TABLE snapshot_owner (
    run INTEGER, snapshot INTEGER, owner TEXT, host_bytes INTEGER, host_blocks INTEGER, device_bytes INTEGER,
    device_blocks INTEGER, PRIMARY KEY (run, snapshot, owner)) WITHOUT ROWID;
CREATE TABLE snapshot_kind (
    run INTEGER, snapshot INTEGER, kind TEXT, bytes INTEGER, PRIMARY KEY (run, snapshot, kind)) WITHOUT ROWID;
CREATE TABLE peak (
    run INTEGER, peak TEXT, time INTEGER, host INTEGER, device INTEGER, PRIMARY KEY (run, peak)) WITHOUT ROWID;
CREATE TABLE peak_owner (
    run INTEGER, peak TEXT, owner TEXT, kind TEXT, role TEXT, bytes INTEGER, blocks INTEGER,
    PRIMARY KEY (run, peak, owner, kind, role)) WITHOUT ROWID;
CREATE TABLE timeline (
    run INTEGER, point INTEGER, time INTEGER, host INTEGER, device INTEGER, maximum INTEGER,
    PRIMARY KEY (run, point)) WITHOUT ROWID;
CREATE TABLE system (
    run INTEGER, figure TEXT, point INTEGER, time INTEGER, bytes INTEGER, PRIMARY KEY (run, figure, point)) WITHOUT ROWID;
CREATE TABLE scope (
    run INTEGER, scope INTEGER, parent INTEGER, name TEXT, thread INTEGER, begin INTEGER, end INTEGER, stack INTEGER,
    host_growth INTEGER, device_growth INTEGER, PRIMARY KEY (run, scope)) WITHOUT ROWID;
CREATE TABLE scope_sum (
    run INTEGER, name TEXT, calls INTEGER, time INTEGER, host_growth INTEGER, device_growth INTEGER,
    PRIMARY KEY (run, name)) WITHOUT ROWID;
CREATE TABLE mark (run INTEGER, mark INTEGER, time INTEGER, name TEXT, PRIMARY KEY (run, mark)) WITHOUT ROWID;
CREATE TABLE region (
    run INTEGER, region INTEGER, name TEXT, thread INTEGER, depth INTEGER, begin INTEGER, end INTEGER,
    PRIMARY KEY (run, region)) WITHOUT ROWID;
CREATE TABLE failure (run INTEGER, api TEXT, code INTEGER, calls INTEGER, PRIMARY KEY (run, api, code)) WITHOUT ROWID;
CREATE TABLE out_of_memory (
    run INTEGER, number INTEGER, time INTEGER, call TEXT, bytes INTEGER, tries INTEGER, outcome TEXT, freed INTEGER, verdict TEXT,
    reason TEXT, free INTEGER, cached INTEGER, largest_hole INTEGER, own INTEGER, others INTEGER, snapshot INTEGER,
    PRIMARY KEY (run, number)) WITHOUT ROWID;
CREATE TABLE counter (run INTEGER, key TEXT, count INTEGER, PRIMARY KEY (run, key)) WITHOUT ROWID;
CREATE TABLE object (
    run INTEGER, object INTEGER, begin INTEGER, end INTEGER, address TEXT, size INTEGER, soname TEXT, path TEXT,
    PRIMARY KEY (run, object)) WITHOUT ROWID;
CREATE TABLE account (
    run INTEGER, account INTEGER, stack INTEGER, kind TEXT, side TEXT, owner TEXT, role TEXT, library TEXT,
    site INTEGER, line INTEGER, PRIMARY KEY (run, account)) WITHOUT ROWID;
CREATE TABLE balance (
    run INTEGER, snapshot INTEGER, account INTEGER, live_bytes INTEGER, live_blocks INTEGER, allocated_bytes INTEGER,
    allocated_blocks INTEGER, temporaries INTEGER, until INTEGER, PRIMARY KEY (run, snapshot, account)) WITHOUT ROWID;
CREATE TABLE peak_account (
    run INTEGER, peak TEXT, account INTEGER, bytes INTEGER, blocks INTEGER,
    PRIMARY KEY (run, peak, account)) WITHOUT ROWID;
CREATE TABLE stack (
    run INTEGER, stack INTEGER, parent INTEGER, frame INTEGER, PRIMARY KEY (run, stack)) WITHOUT ROWID;
CREATE TABLE frame (
    run INTEGER, frame INTEGER, name TEXT, type TEXT, function TEXT, object TEXT, file TEXT, line INTEGER, address TEXT,
    PRIMARY KEY (run, frame)) WITHOUT ROWID;
CREATE VIEW held AS
    SELECT s.run, s.snapshot, s.time, b.account, b.live_bytes, b.live_blocks, b.allocated_bytes, b.allocated_blocks,
        b.temporaries
    FROM snapshot s JOIN balance b ON b.run = s.run AND b.snapshot <= s.snapshot
    WHERE b.until IS NULL OR b.until > s.snapshot;
"""

_Row = Tuple[Any, ...]


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        # SQL's functions on text stop at a NUL.
        return unicode_text(value).replace("\0", "\\x00")
    if isinstance(value, int) and value > _LARGEST:
        raise FormatError("a figure is beyond 63 bits, which SQLite cannot hold: choose another format")
    return value


def _cleaned(rows: Iterable[_Row]) -> Iterator[_Row]:
    for row in rows:
        yield tuple(map(_clean, row))


class _Run:
    """The rows of one profile, table by table."""

    def __init__(self, database: "sqlite3.Connection", profile: Profile, run: int) -> None:
        self._database = database
        self._profile = profile
        self._run = run

    def _insert(self, table: str, rows: Iterable[_Row], are_numbers: bool = False) -> None:
        """Each row without the run's number."""
        rows = ((self._run,) + row for row in (rows if are_numbers else _cleaned(rows)))
        first = next(iter(rows), None)
        if first is None:
            return
        statement = f"INSERT INTO {table} VALUES ({','.join('?' * len(first))})"
        self._database.execute(statement, first)
        self._database.executemany(statement, rows)

    def _run_row(self, detail: str) -> None:
        profile, manifest = self._profile, self._profile.manifest
        end = profile.end
        peaks = {which: profile.peaks.get(which) for which in PEAKS}
        row: _Row = (
            self._run,
            run_id(profile),
            manifest.get("host"),
            manifest.get("board"),
            manifest.get("l4t"),
            jetpack(profile) or None,
            manifest.get("command"),
            profile.number("pid"),
            manifest.get("start"),
            profile.number("start-unix-ms"),
            profile.time_unit,
            manifest.get("memory"),
            profile.is_complete,
            profile.truncation,
            end and end.time,
            end and end.reason,
            end and end.code,
        )
        total, host, device = peaks["total"], peaks["host"], peaks["device"]
        row += (total and total.host + total.device, host and host.host, device and device.device)
        row += (detail, __version__)
        self._database.execute(f"INSERT INTO run VALUES ({','.join('?' * len(row))})", tuple(map(_clean, row)))

    def _snapshots(self) -> None:
        profile = self._profile
        accounts = profile.accounts
        self._insert("snapshot", ((s.id, s.time, s.reason, s.host, s.device) for s in profile.snapshots))
        self._insert("snapshot_kind", ((s.id, kind, n) for s in profile.snapshots for kind, n in s.by_kind.items()))

        def figures(balance: Balance) -> _Row:
            n_bytes, blocks = balance.bytes, balance.blocks
            return (n_bytes["host"], blocks["host"], n_bytes["device"], blocks["device"])

        self._insert(
            "snapshot_owner",
            (
                (snapshot.id, owner) + figures(balance)
                for snapshot, balances in series(profile, lambda account: accounts[account].owner)
                for owner, balance in balances.items()
            ),
        )

    def _peak_owners(self, composition: Composition) -> List[_Row]:
        sums = {}  # type: ignore[var-annotated]
        for account, (n_bytes, blocks) in composition.items():
            _, kind, owner = self._profile.accounts[account]
            row = sums.setdefault((owner, kind, self._profile.role(account) or ""), [0, 0])
            row[0] += n_bytes
            row[1] += counted_blocks(kind, blocks)
        return [key + tuple(row) for key, row in sums.items()]

    def _peaks(self, with_accounts: bool) -> None:
        for which, peak in self._profile.peaks.items():
            self._insert("peak", [(which, peak.time, peak.host, peak.device)])
            composition = self._profile.peak_composition(which)
            self._insert("peak_owner", ((which,) + row for row in self._peak_owners(composition)))
            if with_accounts:
                self._insert("peak_account", ((which, account) + held for account, held in composition.items()))

    def _events(self) -> None:
        profile = self._profile
        self._insert("timeline", ((point,) + row for point, row in enumerate(zip(*profile.timeline))))
        self._insert(
            "system",
            (
                (figure, point, time, n_bytes)
                for figure, columns in profile.system.items()
                for point, (time, n_bytes) in enumerate(zip(*columns))
            ),
        )
        self._insert(
            "scope",
            (
                (s.id, s.parent or None, s.name, s.thread, s.begin, s.end, s.node or None) + growth_by_side(s.growths)
                for s in profile.scopes
            ),
        )
        self._insert(
            "scope_sum",
            ((s.name, s.calls, s.time) + growth_by_side(s.growths) for s in profile.scope_sums.values()),
        )
        self._insert("mark", ((number, mark.time, mark.text) for number, mark in enumerate(profile.marks, 1)))
        self._insert(
            "region",
            ((number, r.text, r.thread, r.depth, r.begin, r.end) for number, r in enumerate(profile.regions, 1)),
        )
        self._insert("failure", (key + (calls,) for key, calls in profile.failures.items()))
        self._insert(
            "out_of_memory", (self._incident(number, each) for number, each in enumerate(incidents(profile), 1))
        )
        self._insert("counter", profile.counters.items())
        self._insert(
            "object",
            (
                (number, o.begin, o.end, f"{o.address:x}", o.size, o.soname, o.path)
                for number, o in enumerate(profile.objects, 1)
            ),
        )

    def _incident(self, number: int, incident: Incident) -> _Row:
        profile, s = self._profile, incident.situation
        snapshot = None if incident.last.snapshot is None else profile.snapshots[incident.last.snapshot].id
        return (
            (number, incident.last.time, call(profile, incident.tries[0]), s.asked, len(incident.tries))
            + (incident.outcome or None, incident.freed, incident.verdict, incident.reason)
            + (s.free, s.cached, s.largest_hole, s.own, s.others, snapshot)
        )

    def _stacks(self) -> None:
        profile = self._profile
        names = Names(profile)
        library = naming(profile, names, "library")

        def account_row(account: int) -> _Row:
            node, kind, owner = profile.accounts[account]
            site, line = names.site_id(account) or None, names.charged(account) or None
            return (
                account,
                node or None,
                kind,
                side_of(kind),
                owner,
                profile.role(account),
                library(account),
                site,
                line,
            )

        self._insert("account", (account_row(id_) for id_, of in enumerate(profile.accounts) if of.kind), True)
        self._insert(
            "frame",
            (
                (id_, names.frame(id_)) + tuple(profile.frame(id_)[:5]) + (f"{profile.frame(id_).address:x}",)
                for id_ in profile.frames
            ),
        )
        nodes = enumerate(zip(profile.node_parent, profile.node_frame))
        self._insert("stack", ((node, parent or None, frame) for node, (parent, frame) in nodes if frame), True)
        for snapshot, until in zip(profile.snapshots, self._until()):
            rows = snapshot.changes
            if any(max(column, default=0) > _LARGEST for column in rows.columns):
                _clean(_LARGEST + 1)
            self._insert("balance", zip(repeat(snapshot.id), *rows.columns, until), True)

    def _until(self) -> "List[List[Optional[int]]]":
        """By snapshot and row of its changes: the id of the snapshot at which the account's next one comes."""
        coming: Dict[int, int] = {}
        found = []
        for snapshot in reversed(self._profile.snapshots):
            accounts = snapshot.changes.account
            found.append([coming.get(account) for account in accounts])
            coming.update(zip(accounts, repeat(snapshot.id)))
        found.reverse()
        return found

    def insert(self, with_accounts: bool) -> None:
        profile = self._profile
        self._run_row("stack" if with_accounts else "owner")
        self._insert("manifest", profile.manifest.items())
        self._insert("owner", profile.group_of.items())
        self._snapshots()
        self._peaks(with_accounts)
        self._events()
        if with_accounts:
            self._stacks()


def _prepare(database: "sqlite3.Connection") -> None:
    """Makes the tables in an empty database. Raises FormatError if it is another's."""
    (version,) = database.execute("PRAGMA user_version").fetchone()
    (application,) = database.execute("PRAGMA application_id").fetchone()
    if application == APPLICATION_ID and version == VERSION:
        return
    if application == APPLICATION_ID:
        raise FormatError(
            f"has tables of version {version}, and this jm_print writes version {VERSION}: name a new file"
        )
    if database.execute("SELECT count(*) FROM sqlite_master").fetchone() != (0,):
        raise FormatError("is a database of something else: name a new file")
    for statement in _SCHEMA.split(";\n"):
        if statement.strip():
            database.execute(statement)
    database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    database.execute(f"PRAGMA user_version = {VERSION}")


def _tables(database: "sqlite3.Connection") -> List[str]:
    return [name for name, in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]


def store(profile: Profile, view: View, path: str) -> None:
    """Adds the run to the database at `path`, in place of its rows there, if any. Raises FormatError."""
    try:
        import sqlite3  # small systems have a Python without it, which makes all other reports
    except ImportError as error:
        raise FormatError(f"needs Python's module sqlite3: {error}")
    is_new = not os.path.exists(path)
    is_done = False
    try:
        # Several commands may add to one file: each waits for the one before.
        database = sqlite3.connect(os.path.abspath(path), timeout=300, isolation_level=None)
        try:
            database.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
            database.execute("BEGIN IMMEDIATE")
            _prepare(database)
            known = database.execute("SELECT run FROM run WHERE id = ?", (run_id(profile),)).fetchone()
            if known:
                for table in _tables(database):
                    database.execute(f"DELETE FROM {table} WHERE run = ?", known)
            (last,) = database.execute("SELECT coalesce(max(run), 0) FROM run").fetchone()
            _Run(database, profile, known[0] if known else last + 1).insert(view.by == "stack")
            database.execute("COMMIT")
            is_done = True
        finally:
            database.close()
            if is_new and not is_done:
                os.unlink(path)
    except sqlite3.Error as error:
        raise FormatError(f"cannot be written: {error}")
