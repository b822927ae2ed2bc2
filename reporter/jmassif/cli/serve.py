# SPDX-License-Identifier: GPL-2.0-or-later
"""`jmassif serve`: the page of runs, or of a fleet, on a server for this machine, at an address with a secret in it."""

import argparse
import os
import signal
import sys
import threading
import webbrowser
from typing import Any

from jmassif.cli import common
from jmassif.cli.common import Parser, Problem
from jmassif.cli.options import add_traces, non_empty, number, traces_of
from jmassif.cli.terminal import Working
from jmassif.fleet import SERVERS, FleetError, needed
from jmassif.reader.tokens import TraceError
from jmassif.render.view import FormatError
from jmassif.units import count

_EPILOG = """\
The page follows a run while it goes on, and has every stack and block in it;
that of a fleet's database compares releases, and leads to the reports of runs.
Its address has a random token, and works on this machine only. Ctrl-C ends it.

examples:
  jmassif serve --open jmassif.out.*
  jmassif serve --group-by=board postgresql://collector/fleet
  ssh -L 8123:127.0.0.1:8123 board jmassif serve --port=8123 jmassif.out.4711"""

_SQLITE = b"SQLite format 3\0"


def build_parser(prog: str) -> Parser:
    about = "Serve the page of runs, also while they are recorded, or of a fleet's database."
    parser = Parser(prog, about, _EPILOG, "[OPTION]... [TRACE]... | DB")
    option = parser.add_argument
    add_traces(parser, "traces of a run's processes [the newest]")
    option("--port", type=number(0, 65535, is_whole=True), default=0, metavar="N", help="the port [any free one]")
    option("--open", action="store_true", help="open the page in the browser")
    option("--source", type=non_empty, metavar="DIR", action="append", help="show source text below DIR too")
    option("--no-source", action="store_true", help="show no source text")
    option("--group-by", type=non_empty, metavar="KEY", help="of a fleet: compare by KEY first [jetpack]")
    where = "of a fleet: only runs with a KEY that matches (!=: does not match) the PATTERN"
    option("--where", action="append", default=[], metavar="KEY=PATTERN", help=where)
    return parser


def _is_database(name: str) -> bool:
    if name.startswith(SERVERS):
        return True
    try:
        with open(name, "rb") as stream:
            return stream.read(len(_SQLITE)) == _SQLITE
    except OSError:
        return False


def _fleet(arguments: argparse.Namespace, name: str) -> Any:
    """Raises Problem."""
    try:
        from jmassif.fleet.served import Fleet
    except ImportError as error:
        raise Problem(needed(error))
    directories = None if arguments.no_source else arguments.source or []
    try:
        with Working("comparing"):
            return Fleet(name, arguments.group_by or "", arguments.where, directories)
    except FleetError as error:
        raise Problem(str(error))


def run(arguments: argparse.Namespace) -> int:
    from jmassif.html.page import read_assets
    from jmassif.serve.server import Library, Pages, Server

    names = traces_of(arguments)
    is_fleet = any(map(_is_database, names))
    if is_fleet and len(names) > 1:
        raise Problem("a fleet's database is served by itself: name nothing else")
    if not is_fleet and (arguments.group_by or arguments.where):
        raise Problem("--group-by and --where are for a fleet's database: name one")
    library: Pages
    try:
        read_assets()
        if is_fleet:
            read_assets("fleet.js")
            library = _fleet(arguments, names[0])
        else:
            with Working(f"reading {count(len(names), 'trace')}"):
                library = Library(names, None if arguments.no_source else arguments.source or [])
    except FormatError as error:
        raise Problem(str(error))
    except TraceError as error:
        name = next((name for name in names if not os.path.isfile(name)), names[0])
        raise Problem(f"{name}: {error}")
    except OverflowError:
        raise Problem(f"{names[0]}: a sum is beyond 64 bits")
    try:
        server = Server(library, arguments.port)
    except OSError as error:
        raise Problem(f"port {arguments.port}: {error.strerror}")
    # A browser that goes away during an answer ends that answer only.
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    is_over = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: is_over.set())
    library.start()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        sys.stdout.write(f"{server.address}\n")
        sys.stdout.flush()
    except OSError as error:
        raise Problem(f"standard output: cannot be written: {error.strerror}")
    if arguments.open and not webbrowser.open(server.address):
        common.warn("no browser to open it with: open the address above")
    is_over.wait()
    library.close()
    server.shutdown()
    return 0
