# SPDX-License-Identifier: GPL-2.0-or-later
"""How a run ended, as numbers and keys: its exit, and the failures that explain it."""

from typing import List, NamedTuple, Optional

from jmassif.analysis.oom import Incident
from jmassif.analysis.system import was_short
from jmassif.model.run import Profile

# Severities.
ALARM = "alarm"  # the run died of it, or may have
WARNING = "warning"
NOTE = "note"

# Ends of a run.
EXIT, SIGNAL, EXEC, DISMISSED, CUT = "exit", "signal", "exec", "dismissed", "cut"
RUNNING, UNKNOWN = "running", "unknown"


class Outcome(NamedTuple):
    end: str  # EXIT; SIGNAL; EXEC: became another program; DISMISSED: ended by its parent; CUT: the trace is; RUNNING; UNKNOWN
    code: int  # exit status, or the signal's number; 0 where unknown
    time: int  # of the end or, where that is not on record, the last that is known
    severity: str  # ALARM, WARNING or NOTE
    failed: Optional[int]  # number of the last incident that was not resolved, from 1 on
    n_failed: int  # incidents that were not resolved
    n_recovered: int  # incidents with a retry that succeeded
    is_fatal: bool  # the run failed after memory ran out
    short_at: Optional[int]  # when the machine's memory first ran short
    available: Optional[int]  # bytes of the machine at the end
    truncation: str  # where the trace is cut off; from the reader
    stopped: str  # why recording stopped early; from the trace


def died(run: Profile) -> bool:
    """The program was killed, or its end is not on record."""
    is_open = not run.is_complete and not run.is_running
    return is_open or (run.end is not None and run.end.reason == "signal")


def _end(run: Profile) -> str:
    if run.was_dismissed:
        return DISMISSED
    if run.truncation:
        return CUT
    if run.end is None:
        return EXEC if run.is_complete else RUNNING if run.is_running else UNKNOWN
    return SIGNAL if run.end.reason == "signal" else EXIT


def last_failure(incidents: List[Incident]) -> Optional[int]:
    """The number of the last incident that was not resolved, from 1 on."""
    return max((number for number, each in enumerate(incidents, 1) if not each.is_resolved), default=None)


def outcome_of(run: Profile, incidents: List[Incident]) -> Outcome:
    failed = last_failure(incidents)
    is_dead = died(run) and not (run.was_dismissed and failed is None)
    has_status = run.end is not None and bool(run.end.code)
    severity = NOTE
    if is_dead or (failed is not None and has_status):
        severity = ALARM
    elif failed is not None or has_status or run.manifest.get("stopped"):
        severity = WARNING
    return Outcome(
        end=_end(run),
        code=run.end.code if run.end else 0,
        time=run.last_time,
        severity=severity,
        failed=failed,
        n_failed=sum(not each.is_resolved for each in incidents),
        n_recovered=sum(each.is_resolved for each in incidents),
        is_fatal=failed is not None and severity == ALARM,
        short_at=was_short(run),
        available=run.system_at("mem-available", run.last_time),
        truncation=run.truncation or "",
        stopped=run.manifest.get("stopped", ""),
    )
