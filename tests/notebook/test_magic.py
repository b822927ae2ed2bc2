# SPDX-License-Identifier: GPL-2.0-or-later
"""%%jmassif, as a notebook's reader sees it: nbconvert executes a notebook, and its outputs are looked at."""

import html
import json
import re
from pathlib import Path
from typing import Any, Dict, List, NamedTuple

import pytest

from jmassif import notebook
from jmassif.reader.builder import load_file
from tests.harness import PYTHON, ROOT, recorder_on_path, run

MB = 1_000_000
OPTIONS = "--pages=no"
HOLDS = f"""\
%%jmassif {OPTIONS} --keep=kept --height=777
import sys
held = [bytes({MB}) for _ in range(21)]
print("é", len(held))
print("to the other", file=sys.stderr)
print(sorted(name for name in globals() if name == "secret"))
"""
FAILS = f"""\
%%jmassif {OPTIONS}
import beside
raise RuntimeError(beside.TEXT)
"""
# In their order: a name of each cell, and its text.
CELLS = {
    "load": "%load_ext jmassif\nsecret = 1",
    "holds": HOLDS,
    "fails": FAILS,
    "killed": f"%%jmassif {OPTIONS}\nimport os, signal\nprint('before', flush=True)\nos.kill(os.getpid(), signal.SIGKILL)",
    "syntax": "%%jmassif\nprint(",
    "word": "%%jmassif pages=no\npass",
    "option": "%%jmassif --no-such-option\npass",
    "help": "%%jmassif --help\npass",
    "missing": "import os\nkept = dict(os.environ)\nos.environ.pop('VALGRIND', None)\nos.environ['PATH'] = '/nonexistent'",
    "without": "%%jmassif\npass",
    "goes on": "print(secret + 1)",
}


class Shown(NamedTuple):
    """What stands below a cell."""

    order: List[str]  # of its outputs: stdout, stderr, text/html, error
    stdout: str
    stderr: str
    html: str
    error: str


def shown(outputs: List[Dict[str, Any]]) -> Shown:
    texts = {"stdout": "", "stderr": "", "text/html": "", "error": ""}
    order: List[str] = []
    for output in outputs:
        if output["output_type"] == "stream":
            pieces = {output["name"]: "".join(output["text"])}
        elif output["output_type"] == "error":
            pieces = {"error": f"{output['ename']}: {output['evalue']}"}
        else:
            pieces = {"text/html": "".join(output["data"].get("text/html", ""))}
        for name, text in pieces.items():
            texts[name] += text
            order.append(name)
    return Shown(order, texts["stdout"], texts["stderr"], texts["text/html"], texts["error"])


@pytest.fixture(scope="module", name="directory")
def fixture_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("notebook")


@pytest.fixture(scope="module", name="cells")
def fixture_cells(directory: Path) -> Dict[str, Shown]:
    """What comes of each cell of CELLS."""
    if run([PYTHON, "-c", "import nbconvert, ipykernel"]).returncode:
        pytest.skip("nbconvert or ipykernel is not installed")
    if not (ROOT / "reporter/jmassif/assets/page.js").exists():
        pytest.skip("the page is not built")
    (directory / "beside.py").write_text("TEXT = 'from beside the notebook'\n")
    cells: List[Dict[str, Any]] = [
        {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": text}
        for text in CELLS.values()
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    book = {"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 4}
    (directory / "book.ipynb").write_text(json.dumps(book))
    done = run(
        [PYTHON, "-m", "nbconvert", "--to=notebook", "--execute", "--allow-errors", "--output=done", "book.ipynb"],
        cwd=directory,
        env={
            "PYTHONPATH": str(ROOT / "reporter"),
            "PYTHONDONTWRITEBYTECODE": "1",
            **recorder_on_path(),
            "HOME": str(directory),
            "JUPYTER_RUNTIME_DIR": str(directory / "runtime"),
            "IPYTHONDIR": str(directory / "ipython"),
        },
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    executed = json.loads((directory / "done.ipynb").read_text())
    return {name: shown(cell["outputs"]) for name, cell in zip(CELLS, executed["cells"])}


def test_what_the_cell_prints_comes_first_and_then_its_page(cells: Dict[str, Shown]) -> None:
    cell = cells["holds"]
    assert cell.stdout == "é 21\n[]\n"  # nothing of the notebook's is there
    assert cell.stderr == "to the other\n"
    assert cell.order[-1] == "text/html" and cell.order.count("text/html") == 1 and not cell.error
    assert re.match(r'<div><iframe title="jmassif" sandbox="allow-scripts allow-downloads" .*height="777"', cell.html)


def test_the_page_is_the_cells_and_knows_its_lines(cells: Dict[str, Shown], directory: Path) -> None:
    found = re.search(r'srcdoc="([^"]*)"', cells["holds"].html)
    assert found
    page = html.unescape(found.group(1))
    assert page == (directory / "kept/page.html").read_text()
    (trace,) = (directory / "kept").glob("jmassif.out.*")
    profile = load_file(str(trace))
    own = 0
    for account, (n_bytes, _) in profile.peak_composition("host").items():
        frames = [profile.frame(frame) for frame in profile.stack(profile.accounts[account].node)]
        lines = [frame.line for frame in frames if frame.type == "p" and frame.file.endswith("/cell.py")]
        own += n_bytes if lines and lines[0] == 2 else 0
    # Each of the bytes objects, which have a head of their own, in blocks whose size is a multiple of 16.
    assert 21 * MB <= own < 21 * MB + 21 * 200
    assert "cell.py" in page


def test_a_cell_that_fails_shows_its_traceback_its_page_and_fails(cells: Dict[str, Shown]) -> None:
    cell = cells["fails"]
    assert "RuntimeError: from beside the notebook" in cell.stderr and 'cell.py", line 2' in cell.stderr
    assert "<iframe" in cell.html
    assert "the cell's process ended with status 1" in cell.stderr + cell.error


def test_a_cell_that_is_killed_has_its_page_too(cells: Dict[str, Shown]) -> None:
    cell = cells["killed"]
    assert cell.stdout == "before\n" and "<iframe" in cell.html
    assert "the cell's process ended by SIGKILL" in cell.stderr + cell.error


@pytest.mark.parametrize(
    "name, says",
    [
        ("word", '%%jmassif: "pages=no" is not an option (%%jmassif --help lists the options)'),
        ("option", "has recorded nothing and ended with status"),
        ("without", "%%jmassif needs the recorder: neither jmassif nor valgrind is on PATH"),
    ],
)
def test_what_is_wrong_is_one_line(cells: Dict[str, Shown], name: str, says: str) -> None:
    cell = cells[name]
    assert not cell.html and not cell.stdout
    said = [line for line in (cell.stderr + cell.error).splitlines() if "UsageError" in line]
    assert len(said) == 1 and says in said[0], cell
    assert "Traceback" not in cell.stderr


def test_a_cell_that_is_no_python_is_never_run(cells: Dict[str, Shown]) -> None:
    assert cells["syntax"].error.startswith("SyntaxError: ") and not cells["syntax"].html


def test_the_magic_says_how_it_is_used_and_the_notebook_goes_on(cells: Dict[str, Shown]) -> None:
    assert cells["help"].stdout.startswith("usage: %%jmassif ") and "--keep DIRECTORY" in cells["help"].stdout
    assert cells["goes on"].stdout == "2\n"


def test_a_page_in_its_frame_is_the_page() -> None:
    page = '<!DOCTYPE html>\n<p title="a&amp;b">\'"</p><script>1 < 2 && "x"</script>\n'
    found = re.search(r'srcdoc="([^"]*)"', notebook.frame(page, 500))
    assert found and html.unescape(found.group(1)) == page


class InterruptedOnce:
    """As standard output is while its reader presses the button: the first write is interrupted."""

    def __init__(self) -> None:
        self.text = ""
        self._was_interrupted = False

    def write(self, text: str) -> None:
        if text and not self._was_interrupted:
            self._was_interrupted = True
            raise KeyboardInterrupt
        self.text += text

    def flush(self) -> None:
        pass


def test_an_interrupt_is_the_processs_first(monkeypatch: pytest.MonkeyPatch) -> None:
    script = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # which whoever started the tests may have ignored
        "try:\n    print('ready', flush=True); time.sleep(300)\n"
        "except KeyboardInterrupt:\n    print('ends in order'); sys.exit(3)\n"
    )
    out = InterruptedOnce()
    monkeypatch.setattr("sys.stdout", out)
    status = notebook._run([PYTHON, "-c", script])
    monkeypatch.undo()
    assert status == 3 and out.text == "ends in order\n"
