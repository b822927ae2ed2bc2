# SPDX-License-Identifier: GPL-2.0-or-later
"""The command jm_serve: the page of runs on a server of its own, at an address that nobody else knows."""

import argparse
import os
import signal
import sys
import threading
import webbrowser
from typing import Any, List, NoReturn, Optional

from jmassif.cli import common, options as editors
from jmassif.cli.common import Parser, Problem, filled
from jmassif.html import page as html
from jmassif.reader.input import STDIN, expand
from jmassif.reader.tokens import TraceError
from jmassif.render.editor import Editor
from jmassif.render.view import FormatError


_NAME = "jm_serve"

_EPILOG = """\
The page is that of jm_print --format=html. Served, it goes on with runs that go on, and has every stack and block
in it. The address has a random token in it, without which nothing is answered, and leads to this machine only:

  ssh -L 8123:127.0.0.1:8123 board jm_serve --port=8123 jmassif.out.4711

has it from a board. Ctrl-C ends it.

examples:
  jm_serve jmassif.out.4711             while it runs, or afterwards
  jm_serve --open jmassif.out.*         several processes, in the browser

exit status: 0, or 2 for bad input"""


def _port(text: str) -> int:
    value = int(text) if text.isdigit() and len(text) < 6 else -1
    if not 0 <= value < 1 << 16:
        raise argparse.ArgumentTypeError(f'"{text}" is no port from 0 to 65535')
    return value


def _parser() -> argparse.ArgumentParser:
    parser = Parser(_NAME, "Serves the page of what valgrind --tool=jmassif has recorded, or is recording.", _EPILOG)
    option = parser.add_argument
    option("files", metavar="TRACE", nargs="+", help="a trace, as a rule jmassif.out.PID; several of several processes")
    option("--port", type=_port, default=0, metavar="N", help="listen on this port [any that is free]")
    option("--open", action="store_true", help="show the page in the browser")
    option(
        "--source",
        type=filled,
        metavar="DIRECTORY",
        action="append",
        help="show the text of source lines from files below DIRECTORY too, whatever is there",
    )
    editors.add_editor(parser)
    option("--no-source", action="store_true", help="leave the text of source lines out")
    return parser


def _library(names: List[str], directories: Optional[List[str]], editor: Optional[Editor]) -> Any:
    from jmassif.serve.library import Library

    for name in names:
        if name == STDIN or (os.path.exists(name) and not os.path.isfile(name)):
            shown = "standard input" if name == STDIN else name
            raise Problem(f"{shown}: is no file: the page asks for places in it again and again (jm_top follows pipes)")
    try:
        return Library(names, directories, editor)
    except TraceError as error:
        name = next((name for name in names if not os.path.exists(name)), names[0])
        raise Problem(f"{name}: {error}")
    except OverflowError:
        raise Problem(f"{names[0]}: a sum is beyond 64 bits")


def _serve(given: Optional[List[str]]) -> int:
    from jmassif.serve.server import Server

    arguments = _parser().parse_args(given)
    try:
        html.read_assets()
    except FormatError as error:
        raise Problem(str(error))
    library = _library(
        expand(arguments.files), None if arguments.no_source else arguments.source or [], arguments.editor
    )
    try:
        server = Server(library, arguments.port)
    except OSError as error:
        raise Problem(f"port {arguments.port}: {error.strerror}")
    # Whoever has gone in the middle of an answer ends that alone.
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
        common.say(_NAME, "no browser to open it with: open the address above")
    while not is_over.wait(0.5):
        pass
    library.close()
    server.shutdown()
    return 0


def main(arguments: Optional[List[str]] = None) -> int:
    """Runs jm_serve with `arguments` (those of the process by default); the exit status."""
    return common.main(_NAME, _serve, arguments)


def run() -> NoReturn:
    """The program."""
    common.run(main)
