# SPDX-License-Identifier: GPL-2.0-or-later
"""A collector's day in short: traces that arrive while the database, the watcher and some files fail."""

import os
import random
import signal
import subprocess
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Set, Tuple

from sqlalchemy import func, select

from jmassif.fleet import FleetError
from jmassif.fleet.database import TRACE, opened
from tests.fleet.server import Server
from tests.reporter.commands import command

EVERY = 0.5
_WAIT_SECONDS = 300  # on a busy machine


class Watcher:
    def __init__(self, address: str, traces: Path, log: Path) -> None:
        words = [*command("fleet"), "watch", f"--every={EVERY}", address, str(traces)]
        self._log = log
        with log.open("ab") as stream:
            self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream)

    def said(self) -> List[str]:
        return self._log.read_text().splitlines()

    def rss_kib(self) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0])

    def end(self, number: int) -> int:
        self.process.send_signal(number)
        return self.process.wait(timeout=120)


def wait_for(condition: Callable[[], Any], seconds: float = _WAIT_SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def n_traces(address: str) -> int:
    try:
        with opened(address) as connection:
            return int(connection.execute(select(func.count()).select_from(TRACE)).scalar())
    except FleetError:
        return -1


class Day(NamedTuple):
    address: str
    kib_in_the_middle: int
    kib_at_the_end: int
    said: List[str]
    damaged: Set[str]
    seconds: float


def live(directory: Path, server: Server, whole: bytes, arrivals: int, outages: int, damaged: int, kills: int) -> Day:
    """All of it, until the last trace is loaded. `whole` is a trace of process 4711.

    A fifth of the traces grows where it lies, a fifth is moved there, the others are written at once, and one in fifty never gets an
    end. Kills are in the first quarter.
    """
    random_ = random.Random(1)
    traces, outside, log, address = directory / "traces", directory / "outside", directory / "log", server.database()
    traces.mkdir()
    outside.mkdir()
    bad = set(random_.sample(range(arrivals), damaged))
    down = {(2 * each + 1) * arrivals // (2 * outages): each for each in range(outages)}
    up = {at + max(2, arrivals // 100) for at in down}
    killed = {(each + 1) * arrivals // (4 * kills + 4) for each in range(kills)}
    later: Dict[int, List[Tuple[Path, bytes]]] = {}
    begin, kib, is_up = time.monotonic(), 0, True
    watcher = Watcher(address, traces, log)

    def wait_until(condition: Callable[[], Any]) -> None:
        wait_for(lambda: watcher.process.poll() is not None or condition())
        assert watcher.process.poll() is None, watcher.said()

    for number in range(arrivals + 60):
        for path, part in later.pop(number, ()):
            with path.open("ab") as stream:
                stream.write(part)
        if number < arrivals:
            path = traces / f"{number % 7}" / f"board-{number:05}.jmassif"
            path.parent.mkdir(exist_ok=True)
            text = whole.replace(b"m pid 4711\n", b"m pid %d\n" % number)
            middle = text.index(b"\nS ", len(text) // 2)
            if number in bad:
                path.write_bytes(text[:middle] + b"\nc 1 2" + text[middle:])
            elif number % 50 == 7:
                path.write_bytes(text[:middle])
            elif number % 5 == 0:
                path.write_bytes(text[: middle // 2])
                for part, after in ((text[middle // 2 : middle], 20), (text[middle:], 40)):
                    later.setdefault(number + after, []).append((path, part))
            elif number % 5 == 1:
                (outside / path.name).write_bytes(text)
                os.utime(str(outside / path.name), (1e9 + number, 1e9 + number))
                (outside / path.name).rename(path)
            else:
                path.write_bytes(text)
        if number in down:
            wait_until(lambda: n_traces(address) > number // 2)
            server.halt()
            is_up = False
            wait_until(lambda: sum("trying again" in line for line in watcher.said()) > down[number])
        if number in up:
            server.start()
            is_up = True
        if number in killed:
            assert watcher.end(signal.SIGKILL) == -signal.SIGKILL
            watcher = Watcher(address, traces, log)
        # All files of the last minute are looked at again: some 4,000 by then. At the half itself the database may be down.
        if number == arrivals * 11 // 20:
            wait_until(lambda: n_traces(address) > number // 2)
            kib = watcher.rss_kib()
        if number % 20 == 0 and is_up:  # as many arrive as are loaded, as on a slower day
            wait_until(lambda: n_traces(address) > number - 200)
    wait_until(lambda: n_traces(address) == arrivals)
    day = Day(address, kib, watcher.rss_kib(), [], set(), time.monotonic() - begin)
    assert watcher.end(signal.SIGTERM) == 0
    names = {f"board-{number:05}.jmassif" for number in bad}
    return day._replace(said=watcher.said(), damaged=names)
