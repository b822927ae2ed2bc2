# SPDX-License-Identifier: GPL-2.0-or-later
"""Of each process of a job, what its frames are called: made once, when it is first asked for."""

from typing import Dict, Iterable, Tuple

from jmassif.model.job import Process
from jmassif.whose.names import Names


class NamesOf:
    def __init__(self, known: Iterable[Tuple[Process, Names]] = ()) -> None:
        self._by_profile: Dict[int, Names] = {id(process.profile): names for process, names in known}

    def __call__(self, process: Process) -> Names:
        key = id(process.profile)
        if key not in self._by_profile:
            self._by_profile[key] = Names(process.profile)
        return self._by_profile[key]
