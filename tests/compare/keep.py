# SPDX-License-Identifier: GPL-2.0-or-later
"""A plugin of pytest that keeps every trace that tests make by hand, one of each, in the directory $JMASSIF_KEEP:

    JMASSIF_KEEP=/tmp/traces python3 -m pytest -q -p tests.compare.keep tests/reporter

They hold what no single recording has: forks, failed allocations, damaged ends. tests/compare/reports reads them.
"""

import hashlib
import os
from pathlib import Path
from typing import Callable


def pytest_collection() -> None:
    from tests.reporter.traces import Trace  # which finds the reporter only now

    kept = Path(os.environ["JMASSIF_KEEP"])
    kept.mkdir(parents=True, exist_ok=True)
    plain: Callable[[Trace], bytes] = Trace.bytes

    def made_and_kept(trace: Trace) -> bytes:
        made = plain(trace)
        (kept / f"jmassif.out.{hashlib.sha256(made).hexdigest()[:12]}").write_bytes(made)
        return made

    Trace.bytes = made_and_kept  # type: ignore[assignment]
