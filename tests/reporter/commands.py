# SPDX-License-Identifier: GPL-2.0-or-later
"""What tests of commands share: a command run in this process, or as one of its own, and how it is to fail."""

import io
import json
import os
import shlex
import subprocess
import sys
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Optional

import pytest

from jmassif.cli.main import main
from jmassif.export.json import schema
from tests.harness import PYCACHE
from tests.reporter.traces import ROOT


class Done(NamedTuple):
    status: int
    out: str
    err: str


class _Stream(io.TextIOWrapper):
    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8")

    def text(self) -> str:
        self.flush()
        return bytes(self.buffer.getvalue()).decode("utf-8")  # type: ignore[attr-defined]


def call(main: Callable[[List[str]], int], *arguments: object) -> Done:
    """Run a command's main function."""
    before, out, err = sys.stdout, _Stream(), io.StringIO()
    sys.stdout = out
    try:
        with redirect_stderr(err):
            status = main([str(argument) for argument in arguments])
    finally:
        sys.stdout = before
    return Done(status, out.text(), err.getvalue())


def jmassif(*arguments: object) -> Done:
    """Run a subcommand in this process."""
    return call(main, *arguments)


def jm_print(*arguments: object) -> Done:
    return call(lambda words: main(["report", *words], "jm_print"), *arguments)


def jm_diff(*arguments: object) -> Done:
    return call(lambda words: main(["diff", *words], "jm_diff"), *arguments)


def command(name: str) -> List[str]:
    """The words that start a process: jm_print or jm_diff, which are scripts, or a subcommand of jmassif. What is compiled is
    kept in the build tree: to compile takes longer than most reports."""
    python = ["env", "-u", "PYTHONDONTWRITEBYTECODE", sys.executable, "-X", f"pycache_prefix={PYCACHE}"]
    if name.startswith("jm_"):
        return [*python, str(ROOT / "reporter" / name)]
    start = f"import sys; sys.path.insert(0, {str(ROOT / 'reporter')!r}); from jmassif.cli.main import run; run()"
    return [*python, "-c", start, name]


def program(name: str, *arguments: object, shell: str = "", env: Optional[Dict[str, str]] = None) -> Done:
    """Run a command as a process, or a shell command in which "NAME" stands for that."""
    words = " ".join(shlex.quote(str(word)) for word in [*command(name), *arguments])
    line = shell.replace(name, words) if shell else words
    done = subprocess.run(["bash", "-c", line], stdout=-1, stderr=-1, timeout=60, env={**os.environ, **(env or {})})
    return Done(done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace"))


def assert_one_line_error(name: str, done: Done, *says: str) -> None:
    assert done.status == 2 and done.out == ""
    assert done.err.startswith(f"{name}: ") and done.err.count("\n") == 1 and done.err.endswith("\n"), done.err
    assert done.err[:-1].isprintable()
    for words in says:
        assert words in done.err


def validator(format_: str = "jmassif") -> Any:
    """A validator of --format=json, by its member `format`. Skips the test where jsonschema is missing."""
    return pytest.importorskip("jsonschema").Draft7Validator(schema(format_))


def documented(name: str) -> str:
    """The text of a file in docs/."""
    return (Path(ROOT) / "docs" / name).read_text(encoding="utf-8")


def section(lines: List[str], title: str) -> List[str]:
    """The lines of a report's section with its heading; empty if the report has none."""
    begin = next((n for n, line in enumerate(lines) if line.startswith("--- ") and title in line), len(lines))
    end = next((n for n in range(begin + 1, len(lines)) if lines[n].startswith("---")), len(lines))
    return [line for line in lines[begin:end] if line]
