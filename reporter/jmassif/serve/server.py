# SPDX-License-Identifier: GPL-2.0-or-later
"""The server of pages: 127.0.0.1 alone, and no answer without the token, the first part of every path.

A foreign page in the same browser can send requests here too. It does not know the token, cannot read an answer, and a name
of its own that leads to this address is refused as Host. Nothing can be written, and no path leads to a file: there are only
the names that Pages knows. A connection that is silent for seconds is closed.

Two threads read each trace of a run. One reads totals alone, which costs little, and publishes them. The other has the whole model, makes
the page again when there are new snapshots, which takes seconds for a large run.
"""

import hmac
import json
import secrets
import socketserver
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, Callable, Dict, Iterable, Optional, Sequence, Tuple

from jmassif.analysis.processes import join
from jmassif.html.page import page
from jmassif.live.run import Family, Followed, LiveRun
from jmassif.reader.tokens import TraceError
from jmassif.units import moment, printable

# ---- the runs ----------------------------------------------------------------------------------------

_LOOK_SECONDS = 0.25
# Making pages takes time from a program on the same machine: at most this share, and none after so long without a request.
_SHARE = 0.25
_WANTED_SECONDS = 20.0


class ServedRun(Followed):
    """Raises TraceError when it is made, and from poll()."""

    def poll(self) -> bool:
        """Reads all that there is; whether anything is new."""
        is_news = super().poll()
        while not self.follower.is_all:
            is_news = super().poll() or is_news
        if is_news:
            self.profile.forget(0)  # of accounts that are new, too
        return is_news


def _now(run: LiveRun) -> Dict[str, Any]:
    """The present figures of a run."""
    now = run.now()
    return {
        "pid": run.pid,
        "state": printable(run.state),
        "is_running": run.is_running,
        "when": moment(now.time, run.profile.time_unit),
        "time": now.time,
        "host": now.host,
        "device": now.device,
        "peak": now.peak,
        "snapshots": len(run.profile.snapshots),
    }


def as_bytes(lines: Iterable[str]) -> bytes:
    return "\n".join(lines).encode("utf-8", "backslashreplace")


class Pages:
    """The pages of a server."""

    def page_of(self, name: str) -> Optional[bytes]:
        """The page with that name below the token; None: there is none."""
        raise NotImplementedError

    def start(self) -> None:
        """Begin work in the background."""

    def close(self) -> None:
        """End it."""


class Library(Pages):
    """The page of a run, which follows it. Raises TraceError for a name that cannot be served."""

    def __init__(self, names: Sequence[str], directories: Optional[Sequence[str]]) -> None:
        self._directories = directories
        self._family = Family(names, has_sums=False)
        self._runs: Dict[str, ServedRun] = {}
        self._changed = threading.Condition()
        self.page = b""
        self._version = 0  # of the page
        self._problem = ""
        self._state: Dict[str, Any] = {}
        self._n_states = 0
        self._is_closed = threading.Event()
        self._last_wanted = 0.0
        self._family.settle()
        self._make_page()
        self._publish()

    def start(self) -> None:
        for step in (self._follow, self._renew):
            threading.Thread(target=self._work, args=(step,), daemon=True).start()

    def close(self) -> None:
        self._is_closed.set()
        with self._changed:
            self._changed.notify_all()

    @property
    def is_closed(self) -> bool:
        return self._is_closed.is_set()

    def page_of(self, name: str) -> Optional[bytes]:
        self.want()
        return self.page if name == "" else None

    def want(self) -> None:
        """A client is there: go on making pages for a while."""
        self._last_wanted = time.monotonic()

    def _work(self, step: Callable[[], float]) -> None:
        """Step after step, each after the pause that the one before asked for, until a trace is damaged."""
        pause = _LOOK_SECONDS
        while not self._problem and not self._is_closed.wait(pause):
            try:
                pause = step()
            except TraceError as error:
                self._problem = printable(str(error))
            self._publish()

    def _follow(self) -> float:
        self._family.poll(_LOOK_SECONDS)
        return _LOOK_SECONDS

    def _renew(self) -> float:
        begin = time.monotonic()
        if begin - self._last_wanted <= _WANTED_SECONDS:
            self._make_page()
        return max(_LOOK_SECONDS, (time.monotonic() - begin) * (1 - _SHARE) / _SHARE)

    def _publish(self) -> None:
        processes = [_now(run) for run in self._family.runs]
        with self._changed:
            state = {"version": self._version, "processes": processes, "problem": self._problem}
            if state != self._state:
                self._state = state
                self._n_states += 1
                self._changed.notify_all()

    def wait(self, n_seen: int, seconds: float) -> Tuple[int, Optional[Dict[str, Any]]]:
        """The next state after so many, and their number; None: there was none for so long."""
        self.want()
        with self._changed:
            self._changed.wait_for(lambda: self._n_states != n_seen or self.is_closed, seconds)
            return self._n_states, self._state if self._n_states != n_seen else None

    def _make_page(self) -> bool:
        """Returns whether anything is new."""
        is_news = not self.page
        for run in list(self._family.runs):
            try:
                if run.name not in self._runs:
                    self._runs[run.name] = ServedRun(run.name)
                    is_news = True
                is_news = self._runs[run.name].poll() or is_news
                profile = self._runs[run.name].profile
                is_news = is_news or profile.is_running != run.is_running
                profile.is_running = run.is_running
            except TraceError:
                self._runs.pop(run.name, None)
                if not self._runs and len(self._family.runs) < 2:
                    raise
                if run in self._family.runs:
                    self._family.runs.remove(run)
        if is_news:
            job = join([(name, run.profile) for name, run in self._runs.items()])
            self.page = as_bytes(page(job, self._directories, True))
            self._version += 1
        return is_news


# ---- the server --------------------------------------------------------------------------------------

HOST = "127.0.0.1"
# Bytes of 256 random bits, in base64.
_TOKEN_BYTES = 32
# For a client to go on with its request, and then to take its answer.
_REQUEST_SECONDS = 5.0
_ANSWER_SECONDS = 60.0
_BEAT_SECONDS = 10.0

_HEADERS = (
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
)
# The policy of answers that are no page; a page has its own, which lists its script.
_POLICY = "default-src 'none'; frame-ancestors 'none'"
_FRAMES = "frame-ancestors 'none'"


class _Refused(Exception):
    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class Server(socketserver.ThreadingMixIn, HTTPServer):
    """Raises OSError where the port is taken."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, pages: Pages, port: int) -> None:
        self.pages = pages
        self.token = secrets.token_urlsafe(_TOKEN_BYTES)
        super().__init__((HOST, port), _Handler)

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.server_address[1]}/{self.token}/"

    @property
    def names(self) -> Tuple[str, ...]:
        """Allowed values of Host."""
        return f"{HOST}:{self.server_address[1]}", f"localhost:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """The client is gone: no message."""


class _Handler(BaseHTTPRequestHandler):
    server: Server
    timeout = _REQUEST_SECONDS
    server_version = "jmassif"
    sys_version = ""

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nothing: the terminal is the user's, and a request has the token in it."""

    def send_error(self, code: int, message: Optional[str] = None, explain: Optional[str] = None) -> None:
        """A fixed text, without anything of the request."""
        self._send(code, "text/plain; charset=utf-8", f"{code}\n".encode("ascii"), _POLICY)

    def _begin(self, status: int, kind: str, policy: str, *more: Tuple[str, str]) -> None:
        self.send_response_only(status)
        for name, value in (("Content-Type", kind), ("Content-Security-Policy", policy), *_HEADERS, *more):
            self.send_header(name, value)
        self.end_headers()
        self.close_connection = True

    def _send(self, status: int, kind: str, content: bytes, policy: str) -> None:
        more = [("Allow", "GET")] * (status == 405)
        self._begin(status, kind, policy, ("Content-Length", str(len(content))), ("Connection", "close"), *more)
        if self.command != "HEAD":
            self.wfile.write(content)

    def _refuse_method(self) -> None:
        self.send_error(405)

    do_HEAD = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_TRACE = do_CONNECT = _refuse_method

    def do_GET(self) -> None:
        try:
            name, pages = self._asked(), self.server.pages
            if name == "events" and isinstance(pages, Library):
                self._stream_events(pages)
                return
            page_ = pages.page_of(name)
            if page_ is None:
                raise _Refused(404, "unknown name")
            self._send(200, "text/html; charset=utf-8", page_, _FRAMES)
        except _Refused as refused:
            self.send_error(refused.status)

    def _asked(self) -> str:
        """The name behind the token. Nothing is decoded or normalized."""
        hosts = self.headers.get_all("Host") or []
        if len(hosts) != 1 or hosts[0] not in self.server.names:
            raise _Refused(403, "another host's name")
        if self.headers.get("Origin") not in (None, *(f"http://{name}" for name in self.server.names)):
            raise _Refused(403, "another origin")
        # The request line as it was sent: some releases of Python make one slash of several.
        path = self.requestline.split()[1]
        begin, _, tail = path[1:].partition("/")
        is_known = hmac.compare_digest(begin.encode("utf-8", "replace"), self.server.token.encode("ascii"))
        if not path.startswith("/") or not is_known:
            raise _Refused(403, "no token")
        self.connection.settimeout(_ANSWER_SECONDS)
        if path == f"/{begin}":
            raise _Refused(404, "the page's address ends in a slash")
        return tail

    def _stream_events(self, library: Library) -> None:
        """Server-sent events: the state whenever it changes, and a beat in between, which fails once the client is gone."""
        try:
            self._begin(200, "text/event-stream; charset=utf-8", _POLICY)
            n_seen = -1
            while not library.is_closed:
                n_seen, state = library.wait(n_seen, _BEAT_SECONDS)
                text = ": \n\n" if state is None else f"data: {json.dumps(state, separators=(',', ':'))}\n\n"
                self.wfile.write(text.encode("utf-8"))
        except OSError:  # the client is gone
            pass
