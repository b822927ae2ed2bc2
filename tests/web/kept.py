# SPDX-License-Identifier: GPL-2.0-or-later
"""Recordings and pages that many tests read: made once, in whatever process these are, and kept below the build tree until
their makings change."""

import hashlib
import shutil
from pathlib import Path
from typing import Callable, Iterable, List

from tests.harness import BUILD, MADE, PYTHON, ROOT, Argument, Recording, lock, record, sim_build
from tests.web.browser import write_page


def kept(name: str, inputs: Iterable[Path], make: Callable[[Path], None]) -> Path:
    """The directory that `make` has filled from the inputs: files, or folders of files."""
    digest = hashlib.sha256()
    for path in inputs:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file() and "__pycache__" not in file.parts:
                digest.update(f"{file}\0".encode() + hashlib.sha256(file.read_bytes()).digest())
    directory = MADE / "web" / name / digest.hexdigest()[:24]
    with lock(f"web-{name}"):
        if not directory.exists():
            shutil.rmtree(str(directory.parent), ignore_errors=True)
            unfinished = directory.with_suffix(".new")
            unfinished.mkdir(parents=True)
            make(unfinished)
            unfinished.rename(directory)
    return directory


def kept_traces(name: str, run: Callable[[], Recording], *inputs: Path) -> List[Path]:
    """The traces of a run, the oldest process first. They are made again when the recorder or an input changes."""

    def make(directory: Path) -> None:
        recording = run()
        assert recording.returncode == 0, recording.stderr
        for number, trace in enumerate(recording.traces):
            shutil.copyfile(str(trace), str(directory / f"jmassif.out.{number}"))

    recorder = sorted((BUILD / "jmassif").glob("*jmassif*-linux*")) + [BUILD / "jmassif" / "libjmassif.so"]
    return sorted(kept(name, [*recorder, *inputs], make).iterdir())


def train(name: str, *options: str) -> List[Path]:
    """The trace of the example on the simulated board."""
    example, sim = ROOT / "docs" / "examples" / "train.py", sim_build()
    command: List[Argument] = [PYTHON, example, "--device=sim"]

    def run() -> Recording:
        return record(command, options, env={"JMSIM_LIB": str(sim)}, timeout=300)

    return kept_traces(name, run, example, sim, ROOT / "reporter" / "jmassif")


def kept_page(name: str, *traces: Path) -> Path:
    reporter = [ROOT / "reporter" / "jmassif", ROOT / "reporter" / "jm_print"]

    def make(directory: Path) -> None:
        write_page(directory, *traces)

    return kept(f"{name}-page", [*reporter, *traces], make) / "report.html"
