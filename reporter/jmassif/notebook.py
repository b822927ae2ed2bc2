# SPDX-License-Identifier: GPL-2.0-or-later
"""%%jmassif: record a notebook's cell, and show its page below its output.

The cell is a script, run by a process of its own: the kernel's has begun without the recorder, and the trace has the cell's
memory alone. Nothing of the notebook is there, no variable and no import, but its working directory and its search path. Output appears
as it comes; the page stands in a frame that can reach nothing of the notebook.
"""

import codecs
import html
import importlib
import os
import selectors
import shlex
import signal
import subprocess
import sys
import tempfile
from argparse import SUPPRESS, Namespace
from pathlib import Path
from typing import Any, Dict, List, Tuple

from jmassif.cli.common import Parser, Problem
from jmassif.launcher import LaunchError, launcher

_SCRIPT = "cell.py"
_PAGE = "page.html"
_REPORTER = "from jmassif.cli.main import jm_print; jm_print()"


def _parser() -> Parser:
    description = "Run this cell below the recorder, in a process of its own, and show the page of its memory."
    epilog = "All other options are the recorder's (jmassif run --help): --large=0, --trace-children=yes, ..."
    parser = Parser("%%jmassif", description, epilog, "[OPTION]...")
    option = parser.add_argument
    option("--height", type=int, default=900, metavar="PIXELS", help="height of the page [900]")
    option("--keep", default="", metavar="DIRECTORY", help="keep traces, script and page there")
    option("--jmassif-out-file", help=SUPPRESS)
    for name in ("--no-source", "--anonymous"):
        option(name, dest="reporter", default=[], action="append_const", const=name, help="as of jmassif report")
    option(
        "--source", dest="reporter", action="append", metavar="DIRECTORY", type="--source={}".format, help="likewise"
    )
    return parser


def _options(line: str) -> Tuple[Namespace, List[str]]:
    """The magic's options, and the recorder's. Raises Problem."""
    try:
        options, rest = _parser().parse_known_args(shlex.split(line))
    except (ValueError, Problem) as error:
        raise Problem(f"%%jmassif: {error}")
    if options.jmassif_out_file is not None:
        raise Problem("%%jmassif: --jmassif-out-file: the trace is kept with --keep=DIRECTORY")
    for word in rest:
        if not word.startswith("--") or len(word) == 2:
            raise Problem(f'%%jmassif: "{word}" is not an option (%%jmassif --help lists the options)')
    return options, rest


# ---- the process -----------------------------------------------------------------------------


def _environment() -> Dict[str, str]:
    """The kernel's search path is kept, without the directories that each Python finds by itself."""
    own = tuple(os.path.join(prefix, "") for prefix in {sys.prefix, sys.base_prefix})
    kept = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    path = [os.getcwd()] + [entry for entry in sys.path if entry and (entry in kept or not entry.startswith(own))]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path)}


def _run(command: List[str]) -> int:
    """The exit status; negative: the signal that ended it. Output is shown as it comes. An interrupt goes to the process first."""
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, env=_environment(), stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe)
    selector = selectors.DefaultSelector()
    decoder: Any = codecs.getincrementaldecoder("utf-8")
    for from_, stream in ((process.stdout, sys.stdout), (process.stderr, sys.stderr)):
        assert from_
        selector.register(from_, selectors.EVENT_READ, (stream, decoder("replace")))
    is_interrupted = False
    with process:
        try:
            while selector.get_map():
                try:
                    for key, _ in selector.select():
                        stream, decode = key.data
                        content = os.read(key.fd, 1 << 16)
                        stream.write(decode.decode(content, final=not content))
                        stream.flush()
                        if not content:
                            selector.unregister(key.fileobj)
                except KeyboardInterrupt:
                    if is_interrupted:
                        raise
                    is_interrupted = True
                    process.send_signal(signal.SIGINT)
            return process.wait()
        except BaseException:
            process.kill()
            raise


def _how_it_ended(status: int) -> str:
    names = {known.value: known.name for known in signal.Signals}
    return f"with status {status}" if status >= 0 else f"by {names.get(-status, f'signal {-status}')}"


# ---- the page --------------------------------------------------------------------------------


def _write_page(traces: List[Path], page: Path, options: List[str]) -> None:
    """Writes in a process of its own: a large trace would stay in the kernel's memory. Raises Problem."""
    above = str(Path(__file__).resolve().parent.parent)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([above, os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-c", _REPORTER, "--format=html", "-o", str(page)] + options
    words = command + [str(trace) for trace in traces]
    pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
    done = subprocess.run(words, env=environment, stdin=nothing, stdout=pipe, stderr=subprocess.STDOUT)
    if done.returncode:
        said = done.stdout.decode("utf-8", "replace").strip().splitlines()
        raise Problem(said[-1] if said else f"the page could not be made (status {done.returncode})")


def frame(page: str, height: int) -> str:
    """Markup that shows a page inside of another page, with an origin of its own."""
    looks = f'sandbox="allow-scripts allow-downloads" width="100%" height="{height}" style="border: 0"'
    return f'<div><iframe title="jmassif" {looks} srcdoc="{html.escape(page, quote=True)}"></iframe></div>'


# ---- all of it -------------------------------------------------------------------------------


def _record(options: Namespace, recorder: List[str], cell: str, directory: Path) -> None:
    """Raises Problem, KeyboardInterrupt."""
    try:
        words = launcher(recorder)
    except LaunchError as error:
        raise Problem(f"%%jmassif {error}")
    script = directory / _SCRIPT
    script.write_text(cell, encoding="utf-8")
    before = set(directory.glob("jmassif.out.*"))
    out = str(directory / "jmassif.out.").replace("%", "%%")
    command = words + ["-q", f"--jmassif-out-file={out}%p"] + recorder
    status = _run(command + [sys.executable, str(script)])
    traces = sorted(set(directory.glob("jmassif.out.*")) - before)
    if not traces:
        raise Problem(
            f"{' '.join(words)} has recorded nothing and ended {_how_it_ended(status)}: see above;"
            " is the tool jmassif installed there, and are the options its own?"
        )
    page = directory / _PAGE
    _write_page(traces, page, options.reporter)
    display = importlib.import_module("IPython.display")
    display.display(display.HTML(frame(page.read_text(encoding="utf-8"), options.height)))
    if status:
        raise Problem(f"the cell's process ended {_how_it_ended(status)}")


def jmassif(line: str, cell: str) -> None:
    """The magic. Raises IPython's UsageError, of which a notebook shows a line, and SyntaxError."""
    if "--help" in line.split():
        print(_parser().format_help())
        return
    try:
        options, recorder = _options(line)
        compile(cell, _SCRIPT, "exec")
        if options.keep:
            os.makedirs(options.keep, exist_ok=True)
            _record(options, recorder, cell, Path(options.keep).resolve())
        else:
            with tempfile.TemporaryDirectory(prefix="jmassif-cell-") as directory:
                _record(options, recorder, cell, Path(directory))
    except (Problem, OSError) as error:
        raise importlib.import_module("IPython.core.error").UsageError(str(error))


def load(shell: Any) -> None:
    """Makes the magic known to an IPython shell."""
    shell.register_magic_function(jmassif, "cell", "jmassif")
