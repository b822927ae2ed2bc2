# SPDX-License-Identifier: GPL-2.0-or-later
"""The server of a page: whom it answers, and what it says of a run."""

import re
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, List, Optional

import pytest

from jmassif.reader.tokens import TraceError
from jmassif.serve.server import Library
from tests.live.test_following import SMALL
from tests.reporter.commands import assert_one_line_error, jmassif
from tests.reporter.traces import Trace
from tests.serve.served import fixture_serve, fixture_small

# ---- who is answered -----------------------------------------------------------------------------


def test_the_address_is_this_machines_with_a_token_that_is_long_and_new(small: Any, serve: Any, tmp_path: Path) -> None:
    served = small[0]
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[A-Za-z0-9_-]{43}/", served.address)
    path = tmp_path / "trace"
    path.write_bytes(SMALL)
    assert serve(path).path != served.path
    # No other address of this machine leads there.
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.2", served.port), 5).close()


def test_the_page_is_served_with_the_token_and_its_own_host(small: Any) -> None:
    served = small[0]
    for host in (f"127.0.0.1:{served.port}", f"localhost:{served.port}"):
        status, content, headers = served.get(served.path, Host=host)
        assert status == 200 and content.startswith(b"<!DOCTYPE html>")
    assert headers["content-security-policy"] == "frame-ancestors 'none'" and headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff" and "access-control-allow-origin" not in headers
    assert "Python" not in headers.get("server", "")


@pytest.mark.parametrize("name", ["", "events"])
def test_without_the_token_nothing_is_answered(small: Any, name: str) -> None:
    served = small[0]
    token = served.path.strip("/")
    other = token[:-1] + ("A" if token[-1] != "A" else "B")
    for path in (
        "/",
        f"/{name}",
        f"//{token}/{name}",
        f"/{other}/{name}",
        f"/{token[:-1]}/{name}",
        f"/{token}x/{name}",
        f"/%2e/{token}/{name}",
    ):
        status, content, _ = served.get(path)
        assert (status, content) == (403, b"403\n")
    assert served.get(f"http://127.0.0.1:{served.port}/{token}/{name}")[0] == 403


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1",
        "localhost",
        "127.0.0.1:1",
        "evil.example:{port}",
        "127.0.0.1:{port}.evil.example",
        "[::1]:{port}",
        "",
    ],
)
def test_another_host_is_refused(small: Any, host: str) -> None:
    served = small[0]
    assert served.get(served.path, Host=host.format(port=served.port))[:2] == (403, b"403\n")


def test_a_request_without_a_host_or_with_two_is_refused(small: Any) -> None:
    served = small[0]
    own = f"Host: 127.0.0.1:{served.port}\r\n"
    for hosts in ("", own + own, own + "Host: evil.example\r\n"):
        with socket.create_connection(("127.0.0.1", served.port), 60) as connection:
            connection.sendall(f"GET {served.path} HTTP/1.0\r\n{hosts}\r\n".encode())
            assert connection.recv(100).startswith(b"HTTP/1.0 403 ")


def test_another_origin_is_refused(small: Any) -> None:
    served = small[0]
    assert served.get(served.path + "events", Origin="https://evil.example")[0] == 403
    assert served.get(served.path, Origin="null")[0] == 403
    assert served.get(served.path, Origin=f"http://127.0.0.1:{served.port}")[0] == 200


@pytest.mark.parametrize(
    "name",
    [
        "../",
        "../../etc/passwd",
        "..%2f..%2fetc%2fpasswd",
        "%2e%2e/",
        "./",
        "//",
        "/etc/passwd",
        "page.html",
        "events/",
        "events%00",
        "events?node=1",
        "?node=1",
        "\\..\\",
        ".",
        "x" * 5000,
    ],
)
def test_tricks_with_paths_lead_nowhere(small: Any, name: str) -> None:
    served = small[0]
    status, content, _ = served.get(served.path + name)
    assert status in (403, 404) and content == f"{status}\n".encode()


def test_too_long_a_request_is_refused(small: Any) -> None:
    assert small[0].get(small[0].path + "x" * 70000)[0] == 414


@pytest.mark.parametrize("method", ["HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"])
def test_only_get_is_answered(small: Any, method: str) -> None:
    status, content, headers = small[0].get(small[0].path, method)
    assert status == 405 and headers["allow"] == "GET" and content in (b"", b"405\n")
    assert small[0].get(small[0].path, "MAKE")[0] == 501


def test_fifty_requests_at_once_are_answered(small: Any) -> None:
    served = small[0]
    found: List[Optional[int]] = [None] * 50
    barrier = threading.Barrier(50)

    def ask(number: int) -> None:
        barrier.wait()
        found[number] = served.get(served.path)[0]

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [200] * 50


def test_silent_connections_keep_nobody_out(small: Any) -> None:
    """They are closed after seconds."""
    served = small[0]
    silent = [socket.create_connection(("127.0.0.1", served.port), 60) for _ in range(100)]
    for connection in silent[:20]:
        connection.sendall(b"GET / HTTP/1.0\r\nHost: ")
    for _ in range(10):
        assert served.get(served.path)[0] == 200
    begin = time.monotonic()
    for connection in silent:
        assert connection.recv(100) == b""
        connection.close()
    assert time.monotonic() - begin < 15


# ---- the command ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments", [["missing"], ["-"], ["/dev/null"], ["/"], [], ["--port=x", "y"], ["--port=70000", "y"]]
)
def test_bad_arguments_are_one_line(arguments: List[str]) -> None:
    assert_one_line_error("jmassif serve", jmassif("serve", *arguments))


def test_bad_input_and_a_port_that_is_taken_are_one_line(tmp_path: Path, small: Any) -> None:
    path = tmp_path / "trace"
    path.write_bytes(b"desc: x\n")
    assert_one_line_error("jmassif serve", jmassif("serve", path), "massif file", str(path))
    path.write_bytes(SMALL)
    assert_one_line_error("jmassif serve", jmassif("serve", f"--port={small[0].port}", path), "port")


def test_a_run_that_goes_on_is_not_said_to_be_killed(tmp_path: Path) -> None:
    """Its trace has no end, as that of a killed program; the process tells the two apart."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    start = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[19]
    host = socket.gethostname()
    trace = Trace(process=f"{process.pid}.{start}", pid=str(process.pid), host=host, memory="unified", time_unit="ms")
    trace.snapshot(5, "time", {trace.account("heap", "app", ["main (a.c:2)"]): (7000, 1)})
    library = Library([str(trace.save(tmp_path))], None)
    assert b"killed" not in library.page.partition(b"<script")[0]
    (shown,) = library.wait(-1, 0)[1]["processes"]  # type: ignore[index]
    assert (shown["state"], shown["snapshots"], shown["host"]) == ("running", 1, 7000)
    process.kill()
    process.wait()
    assert library._make_page() and b"killed" in library.page.partition(b"<script")[0]


def test_of_several_runs_one_that_is_damaged_is_left_out(tmp_path: Path) -> None:
    good, bad = tmp_path / "a", tmp_path / "b"
    good.write_bytes(SMALL)
    bad.write_bytes(re.sub(rb"\nf (\d+) n ", rb"\nf \1 z ", SMALL, count=1))
    assert bad.read_bytes() != SMALL
    library = Library([str(good), str(bad)], None)
    assert len(library.wait(-1, 0)[1]["processes"]) == 1 and library.page  # type: ignore[index]
    with pytest.raises(TraceError):
        Library([str(bad)], None)
