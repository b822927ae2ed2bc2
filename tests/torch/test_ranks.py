# SPDX-License-Identifier: GPL-2.0-or-later
"""Four ranks of torch.distributed over gloo on this machine: the odd one out, and the one that was killed, named first."""

import json
import os
import socket
import subprocess
from pathlib import Path
from typing import Any, Dict, List, Tuple

import pytest

from tests.harness import PYTHON, made_once, need_module, recorder
from tests.reporter.commands import jm_print
from tests.torch.finished import SCRIPTS

MIB = 1 << 20
_PATIENCE = 600  # four imports of PyTorch on a busy machine
_KEEPS = next(n for n, line in enumerate((SCRIPTS / "ranks.py").read_text().splitlines(), 1) if "kept.append" in line)


def _run(directory: Path, host: str) -> None:
    """As torchrun would start them, without its own process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ranks = []
    for rank in range(4):
        names = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 4}
        names.update(TORCHELASTIC_RUN_ID="ranks", OMP_NUM_THREADS=1)
        # Its first samples of pages cost more than the rest.
        words, variables = recorder(directory / "jmassif.out.%p", ["--pages=no"], host=host)
        environment = {**os.environ, **variables, **{name: str(value) for name, value in names.items()}}
        command = list(map(str, [*words, PYTHON, SCRIPTS / "ranks.py"]))
        ranks.append(subprocess.Popen(command, env=environment, stderr=subprocess.PIPE))
    ends = []
    for process in ranks:
        _, errors = process.communicate(timeout=_PATIENCE)
        ends.append((process.pid, process.returncode, errors.decode("utf-8", "replace")))
    (directory / "ends.json").write_text(json.dumps(ends))


def _job(host: str) -> Tuple[List[Tuple[int, int, str]], List[str]]:
    need_module("torch")
    script = (SCRIPTS / "ranks.py").read_text()
    directory = made_once(("ranks", host, script), lambda directory: _run(directory, host))
    traces = sorted(map(str, directory.glob("jmassif.out.*")))
    return json.loads((directory / "ends.json").read_text()), traces


@pytest.mark.parametrize("host", ["native", "valgrind"])
def test_the_killed_rank_is_first_and_the_odd_one_has_its_line(host: str) -> None:
    ends, traces = _job(host)
    # SIGKILL, and the others' errors when its connections broke.
    assert [status for _, status, _ in ends] == [1, -9, 1, 1], ends
    found: Dict[str, Any] = json.loads(jm_print("--format=json", *traces).out)
    assert [(row["rank"], row["pid"]) for row in found["ranks"]] == [(n, pid) for n, (pid, _, _) in enumerate(ends)]
    assert {row["host"] for row in found["ranks"]} == {socket.gethostname()}
    assert found["first_failure"] == 1
    odd = found["odd"]
    assert odd["row"]["rank"] == 2 and odd["line"] == f"ranks.py:{_KEEPS} (main)" and odd["line_median"] == 0
    # Tensors of 8 MiB, and what the line needs besides: three or four, as the others break off.
    assert 3 * 8 * MIB <= odd["line_bytes"] < 5 * 8 * MIB
    # On one clock the killed rank's last record is before the ends of the others.
    by_pid = {each["process"]["pid"]: each["process"]["end"] for each in found["processes"]}
    assert all(by_pid[ends[1][0]] <= by_pid[pid] for pid, _, _ in ends)
    assert {each["process"]["rank"]["job"] for each in found["processes"]} == {"ranks"}
