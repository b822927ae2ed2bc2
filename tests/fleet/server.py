# SPDX-License-Identifier: GPL-2.0-or-later
"""A PostgreSQL server of the tests' own: on a socket in its own directory, run by a user who may do nothing else."""

import glob
import os
import pwd
import shutil
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import List

import pytest


class Server:
    def __init__(self) -> None:
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
        if not found:
            pytest.skip("PostgreSQL is not installed (postgresql)")
        if find_spec("psycopg2") is None:
            pytest.skip("psycopg2 is not installed (python3-psycopg2)")
        self._programs = Path(found[-1]).parent
        # A socket's path is short.
        self.directory = Path(tempfile.mkdtemp(prefix="jmassif-pg-", dir="/tmp"))
        self._as: List[str] = []
        if os.geteuid() == 0:  # whom the server refuses to run as
            try:
                user = pwd.getpwnam("postgres")
            except KeyError:
                pytest.skip("there is no user postgres")
            os.chown(self.directory, user.pw_uid, user.pw_gid)
            self._as = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
        self._n = 0
        data = self.directory / "data"
        self._run("initdb", "-D", str(data), "-A", "trust", "-U", "tester", "-E", "UTF8", "--no-sync", "--locale=C")
        self.start()

    def start(self) -> None:
        options = f"-c listen_addresses='' -c unix_socket_directories='{self.directory}' -c shared_buffers=64MB"
        data, log = str(self.directory / "data"), str(self.directory / "log")
        self._run("pg_ctl", "-D", data, "-l", log, "-o", options, "-w", "-t", "120", "start")

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [*self._as, str(self._programs / program), *arguments],
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=180,
        )
        assert done.returncode == 0, done.stderr.decode()

    def database(self) -> str:
        """The address of a new one, with nothing in it."""
        self._n += 1
        name = f"fleet{self._n}"
        self._run("createdb", "-h", str(self.directory), "-U", "tester", name)
        return f"postgresql:///{name}?host={self.directory}&user=tester"

    def halt(self) -> None:
        self._run("pg_ctl", "-D", str(self.directory / "data"), "-m", "immediate", "-w", "-t", "120", "stop")

    def stop(self) -> None:
        self.halt()
        shutil.rmtree(str(self.directory), ignore_errors=True)
