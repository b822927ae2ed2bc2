# SPDX-License-Identifier: GPL-2.0-or-later
"""A Dask cluster of this machine: a scheduler, and workers that may be killed."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import List

from tests.harness import ROOT


class Cluster:
    def __init__(self, directory: Path, n_workers: int, allowed_failures: int = 3, preload: str = "") -> None:
        """`preload`: a module that workers import first."""
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._preload = [f"--preload={preload}"] * bool(preload)
        self._file = directory / "scheduler.json"
        failures = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": str(allowed_failures)}
        self._environment = {**os.environ, **failures, "PYTHONPATH": str(ROOT / "reporter")}
        self.scheduler = self._start("scheduler", "--host=127.0.0.1", "--port=0", "--no-dashboard")
        deadline = time.monotonic() + 300
        while not self._file.exists() or not self._file.read_text().endswith("}"):
            assert self.scheduler.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
        self.address = self._file.read_text().partition('"address": "')[2].partition('"')[0]
        self.workers: List["subprocess.Popen[bytes]"] = []
        for _ in range(n_workers):
            self.add_worker()

    def _start(self, what: str, *options: str) -> "subprocess.Popen[bytes]":
        words = [sys.executable, "-B", "-m", f"distributed.cli.dask_{what}", f"--scheduler-file={self._file}", *options]
        with (self._directory / f"{what}.log").open("ab") as log:
            return subprocess.Popen(
                words,
                env=self._environment,
                cwd=str(self._directory),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def add_worker(self) -> "subprocess.Popen[bytes]":
        place = f"--local-directory={self._directory}", "--host=127.0.0.1"
        options = ("--nthreads=1", "--no-nanny", "--no-dashboard", "--memory-limit=0", *place, *self._preload)
        self.workers.append(self._start("worker", *options))
        return self.workers[-1]

    def kill_worker(self, worker: "subprocess.Popen[bytes]") -> None:
        """Another one takes its place."""
        worker.kill()
        worker.wait()
        self.workers.remove(worker)
        self.add_worker()

    def stop(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()
