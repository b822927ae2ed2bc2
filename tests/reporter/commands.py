# SPDX-License-Identifier: GPL-2.0-or-later
"""What tests of commands share: a command run in this process, or as one of its own, and how it is to fail."""

import io
import json
import os
import subprocess
import sys
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Union

import pytest

from jmassif.cli import report as _jm_print
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


def call(main: Callable[[Optional[List[str]]], int], *arguments: object) -> Done:
    """Runs a command's main function."""
    before, out, err = sys.stdout, _Stream(), io.StringIO()
    sys.stdout = out
    try:
        with redirect_stderr(err):
            status = main([str(argument) for argument in arguments])
    finally:
        sys.stdout = before
    return Done(status, out.text(), err.getvalue())


def jm_print(*arguments: object) -> Done:
    return call(_jm_print.main, *arguments)


def program(
    name: Union[str, Path], *arguments: object, command: str = "", env: Optional[Dict[str, str]] = None
) -> Done:
    """Runs reporter/NAME, a script, or a shell command in which "NAME" stands for that."""
    script = f"'{sys.executable}' -B '{ROOT / 'reporter' / name}'"
    words = " ".join(f"'{argument}'" for argument in arguments)
    shell = command.replace(str(name), f"{script} {words}") if command else f"{script} {words}"
    environment = {**os.environ, **(env or {})}
    done = subprocess.run(["bash", "-c", shell], stdout=-1, stderr=-1, timeout=60, env=environment)
    return Done(done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace"))


def assert_one_line_error(name: str, done: Done, *says: str) -> None:
    assert done.status == 2 and done.out == ""
    assert done.err.startswith(f"{name}: ") and done.err.count("\n") == 1 and done.err.endswith("\n"), done.err
    assert done.err[:-1].isprintable()
    for words in says:
        assert words in done.err


def validator(schema: str = "report") -> Any:
    """A validator for docs/SCHEMA.schema.json. Skips the test where jsonschema is missing."""
    text = (ROOT / "docs" / f"{schema}.schema.json").read_text(encoding="utf-8")
    return pytest.importorskip("jsonschema").Draft7Validator(json.loads(text))


def documented_options(name: str) -> str:
    """The manual page, with plain dashes."""
    return (Path(ROOT) / "docs" / f"{name}.1").read_text(encoding="utf-8").replace("\\-", "-")


def section(lines: List[str], title: str) -> List[str]:
    """The lines of a report's section with its heading; empty if the report has none."""
    begin = next((n for n, line in enumerate(lines) if line.startswith("--- ") and title in line), len(lines))
    end = next((n for n in range(begin + 1, len(lines)) if lines[n].startswith("---")), len(lines))
    return [line for line in lines[begin:end] if line]
