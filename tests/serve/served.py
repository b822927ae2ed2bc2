# SPDX-License-Identifier: GPL-2.0-or-later
"""A server for tests, and what its answers are compared with."""

import http.client
import os
import signal
import subprocess
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple
from urllib.parse import urlsplit

import pytest

from jmassif.html.page import ASSETS
from jmassif.model.run import Profile
from jmassif.reader.builder import load_file
from tests.live.test_following import SMALL
from tests.reporter.commands import command


class Served:
    """jmassif serve, as long as it is needed."""

    def __init__(self, *arguments: object) -> None:
        words = [*command("serve"), *map(str, arguments)]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert self.process.stdout and self.process.stderr
        self.address = self.process.stdout.readline().decode().strip()
        assert self.address, self.process.stderr.read().decode()
        parts = urlsplit(self.address)
        self.port, self.path = parts.port or 0, parts.path

    def get(self, path: str, method: str = "GET", **headers: str) -> Tuple[int, bytes, Dict[str, str]]:
        """As it is sent: nothing of the path is changed."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.putrequest(method, path, skip_host="Host" in headers, skip_accept_encoding=True)
            for name, value in headers.items():
                connection.putheader(name, value)
            connection.endheaders()
            answer = connection.getresponse()
            return answer.status, answer.read(), {name.lower(): value for name, value in answer.getheaders()}
        finally:
            connection.close()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGINT)
        status = self.process.wait(60)
        for stream in (self.process.stdout, self.process.stderr):
            assert stream
            stream.close()
        return status


@pytest.fixture(name="serve")
def fixture_serve() -> Iterator[Any]:
    opened: List[Served] = []

    def serve(*arguments: object) -> Served:
        opened.append(Served(*arguments))
        return opened[-1]

    yield serve
    for each in opened:
        if each.process.poll() is None:
            each.stop()


@pytest.fixture(name="small", scope="module")
def fixture_small(tmp_path_factory: Any) -> Iterator[Tuple[Served, Profile]]:
    if not os.path.exists(os.path.join(ASSETS, "page.js")):
        pytest.skip("the page is not built")
    path = tmp_path_factory.mktemp("served") / "jmassif.out.1"
    path.write_bytes(SMALL)
    served = Served(path)
    yield served, load_file(str(path))
    assert served.stop() == 0
