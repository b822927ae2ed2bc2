# SPDX-License-Identifier: GPL-2.0-or-later
"""Pages made by jm_print, opened in Chromium: a test lists steps (drive.mjs has them) and gets what each returned."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, List, NamedTuple, Sequence

import pytest

from tests.harness import BUILD, MADE, PYTHON, ROOT, Argument, check_run, lock, run

WEB = ROOT / "reporter" / "web"
SCREENSHOTS = MADE / "screenshots"
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")

Step = Sequence[Any]


class Visit(NamedTuple):
    results: List[Any]
    trouble: List[str]  # what no page should do: errors, requests, dialogs, violations of its policy
    opened_ms: int


def need_page() -> None:
    """Builds the page's script. Skips the test where the means are missing; fails where ./bootstrap could not build it, and
    says why."""
    if os.environ.get("JMASSIF_NO_PAGE"):
        pytest.fail(os.environ["JMASSIF_NO_PAGE"], pytrace=False)
    if shutil.which("npm") is None:
        pytest.skip("Node.js and npm are not installed")
    if not any(map(shutil.which, _BROWSERS)):
        pytest.skip("Chromium is not installed")
    if not (BUILD / "Makefile").exists() or not (ROOT / ".git").exists():
        pytest.skip("the page is tested from a git checkout with a build tree")
    with lock("page"):
        stamp = MADE / "page.stamp"
        sources = [path for path in WEB.rglob("*") if "node_modules" not in path.parts and path.is_file()]
        if not stamp.exists() or any(path.stat().st_mtime > stamp.stat().st_mtime for path in sources):
            check_run(["make", "--no-print-directory", "page"], cwd=BUILD)
            stamp.touch()


def in_node(script: str, asked: Any) -> Any:
    """What a module that may import from src/ prints as JSON, given `asked` likewise."""
    done = subprocess.run(
        ["node", "--input-type=module", "-e", script],
        cwd=str(WEB),
        input=json.dumps(asked).encode(),
        stdout=subprocess.PIPE,
        check=True,
    )
    return json.loads(done.stdout)


def write_page(directory: Path, *traces: Path, options: Sequence[str] = ()) -> Path:
    page = directory / "report.html"
    command: List[Argument] = [PYTHON, ROOT / "reporter" / "jm_print", "--format=html", *options, "-o", page, *traces]
    done = run(command, timeout=300)
    assert done.returncode == 0, done.stderr
    return page


def visit(
    page: Path,
    *steps: Step,
    width: int = 1280,
    height: int = 900,
    scheme: str = "light",
    before: str = "",
    unfold: bool = True,
    throttle: int = 1,
    fragment: str = "",
) -> Visit:
    """`before` is a script that runs before the page's own; `throttle` is how many times slower the processor is."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    plan = {
        "page": str(page),
        "browser": next(filter(None, map(shutil.which, _BROWSERS))),
        "viewport": {"width": width, "height": height},
        "scheme": scheme,
        "before": before,
        "unfold": unfold,
        "throttle": throttle,
        "fragment": fragment,
        "steps": steps,
    }
    done = subprocess.run(
        ["node", str(ROOT / "tests/web/drive.mjs"), str(WEB / "node_modules")],
        input=json.dumps(plan).encode(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr.decode()
    result = json.loads(done.stdout)
    return Visit(result["results"], result["trouble"], result["opened"])


def look(
    page: Path,
    *steps: Step,
    width: int = 1280,
    height: int = 900,
    scheme: str = "light",
    unfold: bool = True,
    fragment: str = "",
) -> List[Any]:
    """visit(), of a page that gives no trouble; what the steps returned."""
    visited = visit(page, *steps, width=width, height=height, scheme=scheme, unfold=unfold, fragment=fragment)
    assert visited.trouble == []
    return visited.results
