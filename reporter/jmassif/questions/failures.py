# SPDX-License-Identifier: GPL-2.0-or-later
"""Calls of an API that returned an error, in words. Those that failed for lack of memory have more told of them: exhaustion.py."""

from typing import List

from jmassif.model.profile import Profile
from jmassif.units import count, printable

# Error codes that the CUDA runtime and driver API share (driver_types.h, cuda.h).
_CUDA_ERRORS = {
    1: "invalid value",
    2: "out of memory",
    3: "not initialized",
    4: "driver shutting down",
    35: "driver too old",
    100: "no device",
    101: "invalid device",
    201: "invalid context",
    304: "operating system call failed",
    400: "invalid handle",
    700: "illegal address",
    712: "host memory already registered",
    713: "host memory not registered",
    719: "launch failure",
    801: "not supported",
    999: "unknown error",
}


def failed_calls(profile: Profile) -> List[str]:
    """A text for each function and error, what came most often first."""
    found = []
    for (name, code), calls in sorted(profile.failures.items(), key=lambda item: (-item[1], item[0])):
        is_cuda = name.startswith("cuda") or (name.startswith("cu") and name[2:3].isupper())
        meaning = _CUDA_ERRORS.get(code) if is_cuda else None
        error = f"error {code} ({meaning})" if meaning else f"error {code}"
        found.append(f"{count(calls, 'call')} of {printable(name)} failed with {error}")
    return found
