# SPDX-License-Identifier: GPL-2.0-or-later
"""Why a map of the device's memory has nothing in it, as far as a trace tells, and what shows more.

A trace without device memory is as good as any: most programs have none. But who asks for a map of it expects some, and mostly has
named the trace of another process, or has recorded a program that found no device.
"""

import re
from typing import List

from jmassif.model.job import became_another
from jmassif.model.kinds import DEVICE_KINDS
from jmassif.model.profile import Profile
from jmassif.questions.device_moments import DeviceMoment
from jmassif.questions.failures import failed_calls
from jmassif.units import printable, size

_WITHOUT_ADDRESSES = ("array", "driver")
_CUDA = re.compile(r"libcuda(rt)?[-.].*")
_HOST = "--format=html and --format=speedscope show the host's"


def _cuda_libraries(profile: Profile) -> List[str]:
    names = [loaded.path.rpartition("/")[2] for loaded in profile.objects]
    return list(dict.fromkeys(printable(name) for name in names if _CUDA.fullmatch(name)))


def _why_none(profile: Profile) -> str:
    libraries = _cuda_libraries(profile)
    failed = failed_calls(profile)
    if became_another(profile):
        return "the process became another program by exec: record with --trace-children=yes, and name that one's trace"
    if not libraries:
        return (
            f"the program loaded no CUDA library (libcuda, libcudart): name the trace of the process that did; {_HOST}"
        )
    loaded = f"the program loaded {' and '.join(libraries[:3])}"
    if failed:
        return f"{loaded}, and {failed[0]}; {_HOST}"
    return f"{loaded}, and asked for none: name the trace of the process that did; {_HOST}"


def why_empty(profile: Profile, at: DeviceMoment) -> str:
    """Of a map that is empty, a line; it says nothing of its file."""
    accounts, lifetime = profile.accounts, profile.lifetime()
    ever = {kind: 0 for kind in DEVICE_KINDS}
    for account, fields in enumerate(accounts):
        if fields.kind in ever:
            ever[fields.kind] += lifetime.bytes[account]
    if not any(ever.values()):
        return f"the trace has no device allocations, so the export is empty: {_why_none(profile)}"
    if not any(n_bytes for kind, n_bytes in ever.items() if kind not in _WITHOUT_ADDRESSES):
        peak = profile.peaks.get("device")
        held = size(peak.device if peak else sum(ever.values()))
        return f"the export is empty: what the trace has of the device, {held}, has no addresses (arrays, the driver's own)"
    return f"the export is empty: nothing had an address on the device at {at.name}; --snapshot=peak-device has most"
