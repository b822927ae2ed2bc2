# SPDX-License-Identifier: GPL-2.0-or-later
"""A process that reads traces: is told paths, a line each, and answers each with a line of JSON.

It is a program of its own with two pipes, and no child that shares its parent's memory: when whoever asks is killed, its input
ends, and so does it. A trace that takes all memory takes this process and not the load.
"""

import gc
import json
import os
import signal
import subprocess
import sys
from typing import Any, BinaryIO, Dict, Optional

from jmassif.fleet.reduce import TooLarge, reduced
from jmassif.trace.builder import load_file
from jmassif.trace.grammar import TraceError

_START = "import sys; sys.path.insert(0, sys.argv[1]); from jmassif.fleet.worker import serve; serve()"


def answer(path: str) -> Dict[str, Any]:
    """What a fleet keeps of the trace, or the reason why it keeps nothing."""
    try:
        return reduced(path, load_file(path))
    except (TraceError, TooLarge) as error:
        return {"reason": str(error)}
    except OverflowError:
        return {"reason": "a sum is beyond 64 bits"}
    except MemoryError:
        return {"reason": "there is not enough memory to read it"}


def serve() -> None:
    """The process."""
    gc.disable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's: whoever asks decides
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    out = sys.stdout.buffer
    for line in sys.stdin.buffer:
        out.write(json.dumps(answer(os.fsdecode(json.loads(line).encode("latin-1")))).encode("ascii") + b"\n")
        out.flush()


class Died(Exception):
    """The process has ended before it answered."""


class Worker:
    def __init__(self) -> None:
        home = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        # Isolated: what lies in the current directory is nobody's module.
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-B", "-c", _START, home], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, path: str) -> Dict[str, Any]:
        """answer(), by the process. Raises Died."""
        to: Optional[BinaryIO] = self._process.stdin  # type: ignore[assignment]
        back: Optional[BinaryIO] = self._process.stdout  # type: ignore[assignment]
        assert to and back
        try:
            # Names of files are bytes.
            to.write(json.dumps(os.fsencode(path).decode("latin-1")).encode("ascii") + b"\n")
            to.flush()
            line = back.readline()
        except OSError:
            line = b""
        if not line.endswith(b"\n"):
            status = self._process.wait()
            how = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
            raise Died(f"the process that read it {how}")
        found: Dict[str, Any] = json.loads(line)
        return found

    def close(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                try:
                    pipe.close()
                except OSError:
                    pass
        self._process.terminate()
        self._process.wait()
