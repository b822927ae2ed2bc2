# SPDX-License-Identifier: GPL-2.0-or-later
"""%%jmassif: a notebook's cell runs below Valgrind, and its page is shown below what it printed.

The cell is a script of its own, run by a process of its own: below Valgrind the kernel could not run, and what is recorded is the
cell's alone. So nothing of the notebook is there, no variable and no import, but its working directory and its search path. What
the process prints appears as it comes; the page stands in a frame that can reach nothing of the notebook.
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
from pathlib import Path
from typing import Any, Dict, List, NamedTuple

from jmassif.launcher import LaunchError, launcher

_SCRIPT = "cell.py"
_PAGE = "page.html"
_HEIGHT = 900
_REPORTER = "from jmassif.cli.main import jm_print; jm_print()"

_USAGE = """\
%%jmassif [OPTION…]: run this cell below Valgrind, in a process of its own, and show where its memory went

  --height=PIXELS    of the page [900]
  --keep=DIRECTORY   keep traces, script and page there
  --no-source, --source=DIRECTORY, --anonymous   as of jm_print
  --help             this text

All other options are the recorder's (man jmassif): --large=0, --pages=no, --trace-children=yes, …"""


class CellError(Exception):
    """One line: what is wrong with the magic's line, what is missing, or how the cell has ended."""


class _Options(NamedTuple):
    height: int
    directory: str  # "": none is kept
    reporter: List[str]
    recorder: List[str]


def _options(line: str) -> _Options:
    """Raises CellError."""
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise CellError(f"{error}: {line}")
    height, directory = _HEIGHT, ""
    reporter: List[str] = []
    recorder: List[str] = []
    for word in words:
        name, _, value = word.partition("=")
        if name == "--height":
            if not (value.isdecimal() and len(value) < 6 and int(value) >= 100):
                raise CellError(f'--height: "{value}" is no number of pixels from 100 on')
            height = int(value)
        elif name == "--keep":
            if not value:
                raise CellError("--keep needs a directory: --keep=DIRECTORY")
            directory = value
        elif name in ("--no-source", "--source", "--anonymous"):
            reporter.append(word)
        elif name == "--jmassif-out-file":
            raise CellError("--jmassif-out-file: the trace is kept with --keep=DIRECTORY")
        elif name.startswith("--") and len(name) > 2:
            recorder.append(word)
        else:
            raise CellError(f'"{word}" is no option; %%jmassif --help lists them')
    return _Options(height, directory, reporter, recorder)


# ---- the process -----------------------------------------------------------------------------


def _environment() -> Dict[str, str]:
    """With the kernel's search path, but for what each Python finds by itself."""
    own = tuple(os.path.join(prefix, "") for prefix in {sys.prefix, sys.base_prefix})
    kept = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    path = [os.getcwd()] + [entry for entry in sys.path if entry and (entry in kept or not entry.startswith(own))]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path)}


def _pass_on(process: "subprocess.Popen[bytes]") -> None:
    """Shows what the process prints, as it comes, until it has closed both. An interrupt goes to the process first."""
    selector = selectors.DefaultSelector()
    decoder = codecs.getincrementaldecoder("utf-8")
    for pipe, stream in ((process.stdout, sys.stdout), (process.stderr, sys.stderr)):
        selector.register(pipe, selectors.EVENT_READ, (stream, decoder("replace")))  # type: ignore[arg-type]
    is_interrupted = False
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


def _run(command: List[str]) -> int:
    """The exit status; negative: the signal that ended it."""
    process = subprocess.Popen(
        command, env=_environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with process:
        try:
            _pass_on(process)
            return process.wait()
        except BaseException:
            process.kill()
            raise


def _how_it_ended(status: int) -> str:
    if status >= 0:
        return f"with status {status}"
    try:
        return f"by {signal.Signals(-status).name}"
    except ValueError:
        return f"by signal {-status}"


# ---- the page --------------------------------------------------------------------------------


def _write_page(traces: List[Path], page: Path, options: List[str]) -> None:
    """Writes in a process of its own: a large trace would stay in the kernel's memory. Raises CellError."""
    above = str(Path(__file__).resolve().parent.parent)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([above, os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-c", _REPORTER, "--format=html", "-o", str(page)] + options
    done = subprocess.run(
        command + [str(trace) for trace in traces],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    if done.returncode:
        said = done.stdout.decode("utf-8", "replace").strip().splitlines()
        raise CellError(said[-1] if said else f"the page could not be made (status {done.returncode})")


def frame(page: str, height: int) -> str:
    """Markup that shows a page inside of another one, of another origin."""
    return (
        f'<div><iframe title="jmassif" sandbox="allow-scripts allow-downloads" width="100%" height="{height}"'
        f' style="border: 0" srcdoc="{html.escape(page, quote=True)}"></iframe></div>'
    )


# ---- all of it -------------------------------------------------------------------------------


def _record(options: _Options, cell: str, directory: Path) -> None:
    """Raises CellError, KeyboardInterrupt."""
    try:
        words = launcher()
    except LaunchError as error:
        raise CellError(f"%%jmassif {error}")
    script = directory / _SCRIPT
    script.write_text(cell, encoding="utf-8")
    before = set(directory.glob("jmassif.out.*"))
    out = str(directory / "jmassif.out.").replace("%", "%%")
    command = words + ["-q", f"--jmassif-out-file={out}%p"] + options.recorder
    status = _run(command + [sys.executable, str(script)])
    traces = sorted(set(directory.glob("jmassif.out.*")) - before)
    if not traces:
        raise CellError(
            f"{' '.join(words)} has recorded nothing and ended {_how_it_ended(status)}: see above;"
            " is the tool jmassif installed there, and are the options its own?"
        )
    page = directory / _PAGE
    _write_page(traces, page, options.reporter)
    display = importlib.import_module("IPython.display")
    display.display(display.HTML(frame(page.read_text(encoding="utf-8"), options.height)))
    if status:
        raise CellError(f"the cell's process ended {_how_it_ended(status)}")


def jmassif(line: str, cell: str) -> None:
    """The magic. Raises IPython's UsageError, of which a notebook shows a line, and SyntaxError."""
    if "--help" in line.split():
        print(_USAGE)
        return
    try:
        options = _options(line)
        compile(cell, _SCRIPT, "exec")
        if options.directory:
            os.makedirs(options.directory, exist_ok=True)
            _record(options, cell, Path(options.directory).resolve())
        else:
            with tempfile.TemporaryDirectory(prefix="jmassif-cell-") as directory:
                _record(options, cell, Path(directory))
    except (CellError, OSError) as error:
        raise importlib.import_module("IPython.core.error").UsageError(str(error))


def load(shell: Any) -> None:
    """Makes the magic known to an IPython shell."""
    shell.register_magic_function(jmassif, "cell", "jmassif")
