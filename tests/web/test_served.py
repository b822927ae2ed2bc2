# SPDX-License-Identifier: GPL-2.0-or-later
"""jm_serve: the page on a server of its own, which goes on with the run, has every place in it, and answers nobody else."""

import http.client
import io
import json
import random
import re
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Tuple
from urllib.parse import urlencode, urlsplit

import pytest

from jmassif.cli import serve as jm_serve
from jmassif.model.records import PEAKS, side_of
from jmassif.model.run import Profile
from jmassif.reader.builder import load, load_file
from jmassif.reader.tokens import TraceError
from jmassif.serve.library import Library
from tests.harness import ROOT
from tests.live.test_following import SMALL, pieces, tail_of
from tests.reporter.commands import assert_one_line_error, call
from tests.reporter.traces import Trace
from tests.web.browser import SCREENSHOTS, look, visit
from tests.web.pages import Page

# A busy machine takes its time.
_PATIENCE_MS = 60000


class Served:
    """jm_serve, as long as it is needed."""

    def __init__(self, *arguments: object) -> None:
        command = [sys.executable, "-B", str(ROOT / "reporter/jm_serve"), *map(str, arguments)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
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

    def ask(self, name: str, **parameters: object) -> Any:
        status, content, _ = self.get(f"{self.path}{name}?{urlencode(parameters)}")
        assert status == 200
        return json.loads(content)

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
    path = tmp_path_factory.mktemp("served") / "jmassif.out.1"
    path.write_bytes(SMALL)
    served = Served(path)
    yield served, load_file(str(path))
    assert served.stop() == 0


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


def test_a_served_page_may_ask_its_server_and_a_file_nobody(small: Any, training: Page) -> None:
    def policy(page: bytes) -> str:
        found = re.search(rb'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
        assert found
        return found.group(1).decode().replace("&#x27;", "'")

    of_file, of_server = policy(training.path.read_bytes()), policy(small[0].get(small[0].path)[1])
    assert of_server == of_file + "; connect-src 'self'" and "connect-src" not in of_file
    assert "default-src 'none'" in of_file


@pytest.mark.parametrize("name", ["", "events", "children?process=1&at=1", "blocks"])
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
    assert served.get(served.path + "children", Origin="null")[0] == 403
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
        "children/..",
        "children%00",
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


@pytest.mark.parametrize(
    "query, status",
    [
        ("process=9&at=1", 404),
        ("process={pid}&at=999999", 404),
        ("process={pid}&at=peak-none", 404),
        ("process={pid}&at=1&node=99999999", 404),
        ("process={pid}&at=1&node=1234567890123", 404),
        ("process={pid}&at=1&node=-1", 400),
        ("process={pid}&at=1&node=x", 400),
        ("process={pid}&at=1&node=٣", 400),
        ("process={pid}&at=1&node=1&node=2", 400),
        ("process={pid}&at=1&path=/etc/passwd", 400),
        ("a&b", 400),
        ("&".join(f"a{n}=1" for n in range(50)), 400),
    ],
)
def test_what_is_not_there_is_said_so(small: Any, query: str, status: int) -> None:
    served, profile = small
    text = query.format(pid=profile.manifest["pid"]).replace("٣", "%D9%A3")
    for name in ("children", "blocks"):
        assert served.get(f"{served.path}{name}?{text}")[:2] == (status, f"{status}\n".encode())


def test_fifty_requests_at_once_are_answered(small: Any) -> None:
    served, profile = small
    pid = profile.manifest["pid"]
    found: List[Optional[int]] = [None] * 50
    barrier = threading.Barrier(50)

    def ask(number: int) -> None:
        barrier.wait()
        name = ("", f"children?process={pid}&at=peak-total", f"blocks?process={pid}&at=peak-total")[number % 3]
        found[number] = served.get(served.path + name)[0]

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [200] * 50


def test_those_who_say_nothing_do_not_keep_others_out(small: Any) -> None:
    """Of more connections than are answered at once some are told to come again, and then there is room."""
    served = small[0]
    silent = [socket.create_connection(("127.0.0.1", served.port), 60) for _ in range(40)]
    assert served.get(served.path)[0] == 200
    silent += [socket.create_connection(("127.0.0.1", served.port), 60) for _ in range(60)]
    last = silent[-1]
    assert last.recv(100).startswith(b"HTTP/1.0 503 ")
    for connection in silent:
        connection.close()
    for _ in range(100):
        if served.get(served.path)[0] == 200:
            return
    pytest.fail("there is no room any more")


# ---- what is answered ----------------------------------------------------------------------------


def walk(profile: Profile, at: str) -> Dict[Tuple[int, ...], List[int]]:
    """By stack of frames, outermost first: host and device bytes and blocks of all that it called, by a walk through accounts."""
    if at.startswith("peak-"):
        composition = profile.peak_composition(at[len("peak-") :])
    else:
        composition = profile.composition([snapshot.id for snapshot in profile.snapshots].index(int(at)))
    sums: Dict[Tuple[int, ...], List[int]] = {}
    for account, (n_bytes, blocks) in composition.items():
        node, kind, _ = profile.accounts[account]
        side = side_of(kind)
        if not side:
            continue
        stack = tuple(profile.stack(node))[::-1]
        for depth in range(len(stack) + 1):
            figures = sums.setdefault(stack[:depth], [0, 0, 0])
            figures[side == "device"] += n_bytes
            figures[2] += 0 if kind == "heap-overhead" else blocks
    return sums


@pytest.mark.parametrize("at", ["peak-total", "1", "40"])
def test_every_place_holds_what_a_walk_through_all_accounts_says(small: Any, at: str) -> None:
    served, profile = small
    wanted = walk(profile, at)
    pid = profile.manifest["pid"]
    chance = random.Random(4)
    pending: List[Tuple[int, Tuple[int, ...]]] = [(0, ())]
    n_asked = 0
    while pending and n_asked < 150:
        node, stack = pending.pop(chance.randrange(len(pending)))
        rows: List[Any] = []
        while True:
            found = served.ask("children", process=pid, at=at, node=node, first=len(rows))
            n_asked += 1
            rows += found["rows"]
            if len(rows) == found["n"]:
                break
        figures = ("host", "device", "blocks")
        assert [found["all"][name] for name in figures] == wanted.get(stack, [0, 0, 0])
        sums = [found["own"][name] + sum(row[name] for row in rows) for name in figures]
        assert sums == wanted.get(stack, [0, 0, 0])
        assert len(rows) == sum(
            1 for each, held in wanted.items() if len(each) == len(stack) + 1 and each[:-1] == stack and any(held)
        )
        for row in rows:
            outer = stack + (profile.node_frame[row["node"]],)
            assert [row[name] for name in figures] == wanted[outer]
            pending.append((row["node"], outer))
    assert n_asked > 20 or at == "1"


def test_every_block_with_a_record_is_found(small: Any) -> None:
    served, profile = small
    position = profile.snapshots[-2].position
    live: Dict[Tuple[int, int], int] = {}
    frees = set(profile.frees)
    for row, (_, address, n_bytes, account) in enumerate(
        zip(profile.blocks.time, profile.blocks.address, profile.blocks.size, profile.blocks.account)
    ):
        if row < position:
            if row in frees:
                live.pop((address, account), None)
            else:
                live[address, account] = n_bytes
    found: List[Any] = []
    while True:
        answer = served.ask("blocks", process=profile.manifest["pid"], at=profile.snapshots[-2].id, first=len(found))
        found += answer["rows"]
        if len(found) == answer["n"]:
            break
    assert sorted((int(row["address"], 16), row["bytes"]) for row in found) == sorted(
        (key[0], n) for key, n in live.items()
    )
    assert len(found) > 5 and answer["bytes"] == sum(live.values())


# ---- in the browser ------------------------------------------------------------------------------

_ROWS = "#places tbody tr"


def test_a_place_that_the_file_prunes_is_found(serve: Any, tmp_path: Path) -> None:
    """The smallest of a great many branches, which the page itself does not know."""
    trace = Trace(memory="unified", pid="7", time_unit="ms", command="many")
    accounts = {}
    for number in range(18000):
        frames = [f"inner{number} (a.c:{number + 1})", "middle (a.c:3)", "main (a.c:2)"]
        accounts[trace.account("heap", "app", frames)] = (18000 - number, 1)
    trace.snapshot(5, "time", accounts)
    trace.snapshot(6, "exit")
    trace.lines.append("Z 6 exit 0")
    served = serve(trace.save(tmp_path))
    assert b"inner17999" not in served.get(served.path)[1]
    results = look(
        served.address,
        ["until", f"document.querySelectorAll('{_ROWS}').length > 100", _PATIENCE_MS],
        ["text", f"{_ROWS}:nth-child(3) td"],
        ["count", _ROWS],
        ["click", f"{_ROWS}:last-child button"],
        ["until", f"document.querySelectorAll('{_ROWS}').length > 400", _PATIENCE_MS],
        [
            "evaluate",
            "[...document.querySelectorAll('#places tbody tr')].slice(3, 403).reduce((sum, row) => sum + Number(row.children[1].dataset.value ?? 0), 0)",
        ],
    )
    assert "middle (a.c:3)" in results[1] and results[2] == 3 + 200 + 1
    assert results[5] == sum(18000 - number for number in range(400))
    last = served.ask("children", process=7, at=1, node=2, first=17999)
    assert [row["host"] for row in last["rows"]] == [1] and last["rows"][0]["name"] == "inner17999 (a.c:18000)"


def test_places_follow_the_moment_open_and_close_and_show_their_blocks(small: Any) -> None:
    served, profile = small
    results = look(
        served.address,
        ["until", f"document.querySelectorAll('{_ROWS}').length > 3", _PATIENCE_MS],
        ["attributes", f"{_ROWS}:first-child td.figure", "data-value"],
        ["click", ".bar button:text-is('host peak')"],
        ["until", f"document.querySelector('#places [role=status]').innerText.includes('host peak')", _PATIENCE_MS],
        ["attributes", f"{_ROWS}:first-child td.figure", "data-value"],
        ["count", _ROWS],
        ["click", f"{_ROWS} button[aria-expanded=false]"],
        ["until", f"document.querySelector('{_ROWS} button[aria-expanded=true]') !== null", _PATIENCE_MS],
        ["count", _ROWS],
        ["click", f"{_ROWS} button[aria-expanded=true]"],
        ["count", _ROWS],
        ["click", f"{_ROWS}:first-child td:last-child button"],
        ["until", "document.querySelectorAll('#places .table tbody tr').length > 2", _PATIENCE_MS],
        ["axe"],
        ["screenshot", str(SCREENSHOTS / "served.png"), True],
    )
    at_peak, at_host_peak = walk(profile, "peak-total")[()], walk(profile, "peak-host")[()]
    assert list(map(int, results[1])) == at_peak and list(map(int, results[4])) == at_host_peak
    assert results[8] > results[5] and results[10] <= results[5] and results[13] == []


def test_a_page_that_is_a_file_has_no_such_section(training: Page) -> None:
    visited = visit(training.path, ["evaluate", "document.getElementById('places').hidden"], ["count", ".live"])
    assert visited.results == [True, 0] and visited.trouble == []


def test_the_page_goes_on_with_the_run(serve: Any, tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "jmassif.out.1"
    parts = pieces(SMALL)
    path.write_bytes(b"".join(parts[:40]))
    served = serve(path)
    whole = load(io.BytesIO(SMALL))
    before = load_file(str(path))
    n_before = len(before.snapshots)
    # Snapshots and peaks, as the page has them.
    n_shown, n_at_end = (len(each.snapshots) + len(set(each.peaks) & set(PEAKS)) for each in (before, whole))
    n_moments = "Number(document.querySelector('#chosen').title.split(' ')[0])"
    now = "document.querySelector('#now').innerText"
    results = look(
        served.address,
        ["until", f"{now}.includes('{n_before} snapshots')", _PATIENCE_MS],
        ["evaluate", n_moments],
        ["append", str(path), parts[40].decode()],
        ["until", f"{now}.includes('{n_before + 1} snapshots')", _PATIENCE_MS],
        ["until", f"{n_moments} > {n_shown}", _PATIENCE_MS],
        # Whoever looks around in peace is told of what is new, and shown it when they want.
        ["click", ".live input"],
        ["append", str(path), b"".join(parts[41:]).decode()],
        ["until", f"{now}.includes('ended, status 0')", _PATIENCE_MS],
        ["evaluate", n_moments],
        ["click", ".live input"],
        ["until", f"{n_moments} === {n_at_end}", _PATIENCE_MS],
        ["text", "#headline"],
        ["axe"],
    )
    with capsys.disabled():
        print(f"\nfigures {results[3]} ms after a snapshot, all of the page {results[4]} ms later")
    assert results[1] == n_shown and results[8] < n_at_end
    assert results[12] == []


def test_a_tail_is_shown_and_goes_again(serve: Any, tmp_path: Path) -> None:
    """What is served of a trace with a tail is what a reader of the whole file has; when it is replaced, likewise."""
    path = tmp_path / "jmassif.out.1"
    parts = pieces(SMALL)
    begin = parts[30].find(b"\nS ") + 1
    path.write_bytes(b"".join(parts[:30]) + parts[30][:begin] + tail_of(parts[30]))
    served = serve(path)
    profile = load_file(str(path))
    pid, last = profile.manifest["pid"], profile.snapshots[-1].id
    assert list(served.ask("children", process=pid, at=last)["all"].values()) == walk(profile, str(last))[()]
    path.write_bytes(b"".join(parts[:35]))
    profile = load_file(str(path))
    for _ in range(300):
        status, content, _ = served.get(f"{served.path}children?process={pid}&at={profile.snapshots[-1].id}")
        if status == 200:
            break
        threading.Event().wait(0.1)
    assert list(json.loads(content)["all"].values()) == walk(profile, str(profile.snapshots[-1].id))[()]


# ---- the command ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments", [["missing"], ["-"], ["/dev/null"], ["/"], [], ["--port=x", "y"], ["--port=70000", "y"]]
)
def test_bad_arguments_are_one_line(arguments: List[str]) -> None:
    assert_one_line_error("jm_serve", call(jm_serve.main, *arguments))


def test_bad_input_and_a_port_that_is_taken_are_one_line(tmp_path: Path, small: Any) -> None:
    path = tmp_path / "trace"
    path.write_bytes(b"desc: x\n")
    assert_one_line_error("jm_serve", call(jm_serve.main, path), "massif file", str(path))
    path.write_bytes(SMALL)
    assert_one_line_error("jm_serve", call(jm_serve.main, f"--port={small[0].port}", path), "port")


def test_of_several_runs_one_that_is_damaged_is_left_out(tmp_path: Path) -> None:
    good, bad = tmp_path / "a", tmp_path / "b"
    good.write_bytes(SMALL)
    bad.write_bytes(SMALL.replace(b"\nn 1 ", b"\nn 99999 ", 1))
    assert bad.read_bytes() != SMALL
    library = Library([str(good), str(bad)], None)
    assert len(library.wait(-1, 0)[1]["processes"]) == 1 and library.page  # type: ignore[index]
    with pytest.raises(TraceError):
        Library([str(bad)], None)
