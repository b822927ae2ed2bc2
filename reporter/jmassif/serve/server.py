# SPDX-License-Identifier: GPL-2.0-or-later
"""The server: 127.0.0.1 alone, and no answer without the token, the first part of every path.

A foreign page in the same browser can send requests here too. It does not know the token, cannot read an answer, and a name
of its own that leads to this address is refused as Host. Nothing can be written, and no path leads to a file: there are four
names. The number of connections is limited; those that have not shown the token yet make room for new ones.
"""

import hmac
import json
import secrets
import socket
import socketserver
import threading
import time
from collections import OrderedDict
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, Dict, Optional, Tuple
from urllib.parse import parse_qs, urlsplit

from jmassif.serve.library import Library, NotThere

HOST = "127.0.0.1"
# Bytes of 256 random bits, in base64.
_TOKEN_BYTES = 32
_MOST_REQUESTS = 64
_MOST_LISTENERS = 16
# For a connection to show the token, and then to take its answer.
_TOKEN_SECONDS = 5.0
_PATIENCE_SECONDS = 30.0
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

    def __init__(self, library: Library, port: int) -> None:
        self.library = library
        self.token = secrets.token_urlsafe(_TOKEN_BYTES)
        self.places = threading.BoundedSemaphore(_MOST_REQUESTS)
        self.listeners = threading.BoundedSemaphore(_MOST_LISTENERS)
        self._strangers: "OrderedDict[socket.socket, float]" = OrderedDict()  # without a token so far, since when
        self._lock = threading.Lock()
        super().__init__((HOST, port), _Handler)

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.server_address[1]}/{self.token}/"

    @property
    def names(self) -> Tuple[str, ...]:
        """Allowed values of Host."""
        return f"{HOST}:{self.server_address[1]}", f"localhost:{self.server_address[1]}"

    def process_request(self, request: Any, client_address: Any) -> None:
        has_place = self.places.acquire(blocking=False)
        if not has_place and self._drop_strangers(1):
            has_place = self.places.acquire(timeout=1.0)
        if has_place:
            with self._lock:
                self._strangers[request] = time.monotonic()
            super().process_request(request, client_address)
            return
        try:
            request.settimeout(1.0)
            request.sendall(b"HTTP/1.0 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n")
        except OSError:
            pass
        self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.know(request)
            self.places.release()

    def know(self, request: socket.socket) -> None:
        """It has shown the token, or is gone."""
        with self._lock:
            self._strangers.pop(request, None)

    def _drop_strangers(self, least: int) -> int:
        """Drops the `least` oldest connections without a token, and all that are too old; how many."""
        now = time.monotonic()
        with self._lock:
            dropped = [
                request
                for place, (request, begin) in enumerate(self._strangers.items())
                if place < least or now - begin > _TOKEN_SECONDS
            ]
            for request in dropped:
                del self._strangers[request]
                try:
                    request.shutdown(socket.SHUT_RDWR)  # its thread closes it
                except OSError:
                    pass
        return len(dropped)

    def service_actions(self) -> None:
        """Called twice a second."""
        self._drop_strangers(0)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """The client is gone: no message."""


class _Handler(BaseHTTPRequestHandler):
    server: Server
    timeout = _PATIENCE_SECONDS
    server_version = "jmassif"
    sys_version = ""

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nothing: the terminal is the user's, and a request has the token in it."""

    def send_error(self, code: int, message: Optional[str] = None, explain: Optional[str] = None) -> None:
        """A fixed text, without anything of the request."""
        self._send(code, "text/plain; charset=utf-8", f"{code}\n".encode("ascii"), _POLICY)

    def _send(self, status: int, kind: str, content: bytes, policy: str) -> None:
        self.send_response_only(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Content-Security-Policy", policy)
        self.send_header("Connection", "close")
        for name, value in _HEADERS:
            self.send_header(name, value)
        if status == 405:
            self.send_header("Allow", "GET")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)
        self.close_connection = True

    def _refuse_method(self) -> None:
        self.send_error(405)

    do_HEAD = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_TRACE = do_CONNECT = _refuse_method

    def do_GET(self) -> None:
        try:
            name, query = self._asked()
            if name == "":
                self._send(200, "text/html; charset=utf-8", self.server.library.page, _FRAMES)
            elif name == "events":
                self._stream_events()
            elif name in ("children", "blocks"):
                self._answer(name, query)
            else:
                raise _Refused(404, "unknown name")
        except _Refused as refused:
            self.send_error(refused.status)

    def _asked(self) -> Tuple[str, Dict[str, str]]:
        """The name behind the token, and the parameters. Nothing is decoded or normalized."""
        hosts = self.headers.get_all("Host") or []
        if len(hosts) != 1 or hosts[0] not in self.server.names:
            raise _Refused(403, "another host's name")
        if self.headers.get("Origin") not in (None, *(f"http://{name}" for name in self.server.names)):
            raise _Refused(403, "another origin")
        # The request line as it was sent: some releases of Python make one slash of several.
        path, _, rest = self.requestline.split()[1].partition("?")
        begin, _, tail = path[1:].partition("/")
        is_known = hmac.compare_digest(begin.encode("utf-8", "replace"), self.server.token.encode("ascii"))
        if not path.startswith("/") or not is_known:
            raise _Refused(403, "no token")
        self.server.know(self.request)
        if path == f"/{begin}":
            raise _Refused(404, "the page's address ends in a slash")
        try:
            query = parse_qs(urlsplit(f"?{rest}").query, strict_parsing=bool(rest), max_num_fields=8)
        except ValueError:
            raise _Refused(400, "no parameters")
        if any(len(values) != 1 for values in query.values()):
            raise _Refused(400, "a parameter comes twice")
        return tail, {key: values[0] for key, values in query.items()}

    def _answer(self, name: str, query: Dict[str, str]) -> None:
        if set(query) - {"process", "at", "node", "first"}:
            raise _Refused(400, "no such parameter")
        numbers = [query.get(key, "0") for key in ("node", "first")]
        if not all(
            number.isdecimal() and number.isascii() if hasattr(number, "isascii") else number.isdecimal()
            for number in numbers
        ):
            raise _Refused(400, "no number")
        if any(len(number) > 12 for number in numbers):
            raise _Refused(404, "beyond all places")
        library = self.server.library
        ask = library.children if name == "children" else library.blocks
        try:
            found = ask(query.get("process", ""), query.get("at", ""), int(numbers[0]), int(numbers[1]))
        except NotThere:
            raise _Refused(404, "not there")
        text = json.dumps(found, separators=(",", ":")).encode("utf-8")
        self._send(200, "application/json", text, _POLICY)

    def _stream_events(self) -> None:
        """Server-sent events: the state whenever it changes, and a beat in between, which fails once the client is gone."""
        if not self.server.listeners.acquire(blocking=False):
            raise _Refused(503, "too many listeners")
        try:
            self.send_response_only(200)
            self.send_header("Content-Type", "text/event-stream; charset=utf-8")
            self.send_header("Content-Security-Policy", _POLICY)
            for name, value in _HEADERS:
                self.send_header(name, value)
            self.end_headers()
            self.close_connection = True
            n_seen = -1
            while not self.server.library.is_closed:
                n_seen, state = self.server.library.wait(n_seen, _BEAT_SECONDS)
                text = ": \n\n" if state is None else f"data: {json.dumps(state, separators=(',', ':'))}\n\n"
                self.wfile.write(text.encode("utf-8"))
        except OSError:  # the client is gone
            pass
        finally:
            self.server.listeners.release()
