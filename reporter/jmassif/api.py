# SPDX-License-Identifier: GPL-2.0-or-later
"""The documented Python API (docs/reference.md): a run and a job, with load() to read them from files."""

import os
from typing import Optional, Sequence, Tuple, Union

from jmassif.analysis import processes as job
from jmassif.analysis.allocator_steps import FitError
from jmassif.analysis.fit import Fit, Trials, fit_batches, try_settings
from jmassif.analysis.loading import Loading, find_loading
from jmassif.attribution.names import Names
from jmassif.model import run as model
from jmassif.model.process_tree import tree
from jmassif.reader.builder import load_as
from jmassif.reader.tokens import TraceError
from jmassif.units import printable

__all__ = ["FitError", "Processes", "Profile", "TraceError"]


class Profile(model.Profile):
    """One run."""

    @staticmethod
    def load(path: "Union[str, os.PathLike[str]]") -> "Profile":
        """Reads the trace at `path`, which may be compressed with gzip; "-" is standard input.

        A trace that ends early, because the program was killed or still runs, is read as far as it goes: see `is_complete`
        and `truncation`. Raises jmassif.TraceError, with a text of one line, for a file that is not a trace, damaged or unreadable.
        """
        name = os.fspath(path)
        try:
            return load_as(Profile, name)
        except TraceError as error:
            raise TraceError(f"{printable(name)}: {error}") from None

    def loading(self) -> Optional[Loading]:
        """The peaks while PyTorch's model was loaded, and since; None where the trace does not prove both."""
        return find_loading(self, Names(self))

    def fit(
        self, other: "Profile", batches: Tuple[int, int], at: Sequence[int] = (), board: Optional[int] = None
    ) -> Fit:
        """The memory that the training needs with other batches, from this run, another, and their batches.

        `at` are the batches to judge, by default the largest that fits and the next; `board` is the memory of the board in
        question in bytes, by default that of the runs. Raises jmassif.FitError with a text of one line.
        """
        return fit_batches((self, other), batches, list(at), board)

    def fit_settings(self, board: Optional[int] = None) -> Trials:
        """The peaks of other settings of PyTorch's allocator. Raises jmassif.FitError."""
        return try_settings(self, board)


class Processes(job.Processes):
    """The processes of a job, in the order of their tree: each one before those it started."""

    @staticmethod
    def load(paths: "Sequence[Union[str, os.PathLike[str]]]") -> "Processes":
        """Reads the traces of a job's processes. Raises jmassif.TraceError, as Profile.load does."""
        return Processes(*tree([(os.fspath(path), Profile.load(path)) for path in paths]))
