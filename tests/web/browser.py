# SPDX-License-Identifier: GPL-2.0-or-later
"""Pages made by jm_print, opened in Chromium: a test lists steps (drive.mjs has them) and gets what each returned."""

import atexit
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Union

import pytest

from tests.harness import BUILD, MADE, ROOT, Argument, check_run, lock, run
from tests.reporter.commands import command

WEB = ROOT / "reporter" / "web"
SCREENSHOTS = MADE / "screenshots"
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")

Step = Sequence[Any]
Seen = Dict[str, List[Any]]  # by name, the results of some steps


class Visit(NamedTuple):
    results: List[Any]
    trouble: List[str]  # what no page should do: errors, requests, dialogs, violations of its policy
    opened_ms: int


def need_node() -> None:
    """Skips the test without Node.js; fails where ./bootstrap found that it is no use, and says why."""
    if os.environ.get("JMASSIF_NO_PAGE"):
        pytest.fail(os.environ["JMASSIF_NO_PAGE"], pytrace=False)
    if shutil.which("npm") is None:
        pytest.skip("Node.js and npm are not installed")


def need_page() -> None:
    """Builds the page's script. Skips the test where the means are missing."""
    need_node()
    if not any(map(shutil.which, _BROWSERS)):
        pytest.skip("Chromium is not installed")
    build_page()


def build_page() -> None:
    """Builds the page's script, and fetches its packages."""
    if not (BUILD / "Makefile").exists() or not (ROOT / ".git").exists():
        pytest.skip("the page is tested from a git checkout with a build tree")
    with lock("page"):
        stamp = MADE / "page.stamp"
        sources = [path for path in WEB.rglob("*") if "node_modules" not in path.parts and path.is_file()]
        if not stamp.exists() or any(path.stat().st_mtime > stamp.stat().st_mtime for path in sources):
            check_run(["make", "--no-print-directory", "page"], cwd=BUILD)
            stamp.touch()


def bundle(bundled: Path, module: Union[str, Path]) -> Path:
    """What Node.js can run of a module that imports the page's sources: its file, or its text, which imports from src/."""
    options = ["--bundle", "--format=esm", "--platform=node", "--log-level=warning", f"--outfile={bundled}"]
    given, text = ([str(module)], b"") if isinstance(module, Path) else ([], module.encode())
    subprocess.run(["node_modules/.bin/esbuild", *options, *given], cwd=str(WEB), input=text, check=True)
    return bundled


def in_node(script: str, asked: Any) -> Any:
    """What a module that may import from src/ prints as JSON, given `asked` likewise."""
    with tempfile.TemporaryDirectory() as directory:
        command = ["node", str(bundle(Path(directory) / "script.mjs", script))]
        done = subprocess.run(command, input=json.dumps(asked).encode(), stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def write_page(directory: Path, *traces: Path, options: Sequence[str] = ()) -> Path:
    page = directory / "report.html"
    words: List[Argument] = [*command("jm_print"), "--format=html", *options, "-o", page, *traces]
    done = run(words, timeout=300)
    assert done.returncode == 0, done.stderr
    return page


class _Driver:
    """drive.mjs and its browser: started by the first visit, anew after a crash, ended with this process."""

    _process: Optional["subprocess.Popen[bytes]"] = None

    def visit(self, plan: Dict[str, Any], timeout: float) -> Dict[str, Any]:
        """Fails where the visit does, crashes or hangs; the next visit works again."""
        process = self._running()
        assert process.stdin and process.stdout
        try:
            process.stdin.write(json.dumps(plan).encode() + b"\n")
            process.stdin.flush()
            answer = _read_line(process.stdout.fileno(), timeout)
        except (OSError, TimeoutError) as error:
            self.kill()
            raise AssertionError(f"visit of {plan['page']}: {error}\n{self._said()}") from None
        result: Dict[str, Any] = json.loads(answer)
        assert "error" not in result, result["error"]
        return result

    def _running(self) -> "subprocess.Popen[bytes]":
        if self._process is None or self._process.poll() is not None:
            browser = next(filter(None, map(shutil.which, _BROWSERS)))
            command: List[str] = ["node", str(ROOT / "tests/web/drive.mjs"), str(WEB / "node_modules"), str(browser)]
            self._errors = tempfile.TemporaryFile()
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors
            )
        return self._process

    def _said(self) -> str:
        self._errors.seek(0)
        return self._errors.read().decode("utf-8", "backslashreplace")

    @property
    def pid(self) -> int:
        return self._process.pid if self._process else 0

    def kill(self) -> None:
        """Chromium ends with the driver, whatever its pages do."""
        if self._process:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def end(self) -> None:
        if self._process:
            try:
                self._process.communicate(timeout=20)
            except subprocess.TimeoutExpired:
                self.kill()


def _read_line(descriptor: int, timeout: float) -> bytes:
    """Without its end."""
    line = b""
    until = time.monotonic() + timeout
    while not line.endswith(b"\n"):
        ready, _, _ = select.select([descriptor], [], [], max(0, until - time.monotonic()))
        if not ready:
            raise TimeoutError(f"no end within {timeout} s")
        part = os.read(descriptor, 1 << 20)
        if not part:
            raise OSError("the driver has ended")
        line += part
    return line[:-1]


DRIVER = _Driver()
atexit.register(DRIVER.end)


def visit(
    page: Path,
    *steps: Step,
    width: int = 1280,
    height: int = 900,
    scheme: str = "light",
    before: str = "",
    tabs: str = "all",
    throttle: int = 1,
    fragment: str = "",
    timeout: float = 300,
) -> Visit:
    """`before` is a script that runs before the page's own; `throttle` is how many times slower the processor is; `tabs`: "all"
    are opened at first, and again where a step needs them, which takes a long run's page a second; "needed": only then; or "none".
    """
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    plan = {
        "page": str(page),
        "viewport": {"width": width, "height": height},
        "scheme": scheme,
        "before": before,
        "tabs": tabs,
        "throttle": throttle,
        "fragment": fragment,
        "steps": steps,
    }
    result = DRIVER.visit(plan, timeout)
    return Visit(result["results"], result["trouble"], result["opened"])


def look(
    page: Path,
    *steps: Step,
    width: int = 1280,
    height: int = 900,
    scheme: str = "light",
    tabs: str = "all",
    fragment: str = "",
) -> List[Any]:
    """visit(), of a page that gives no trouble; what the steps returned."""
    visited = visit(page, *steps, width=width, height=height, scheme=scheme, tabs=tabs, fragment=fragment)
    assert visited.trouble == []
    return visited.results


def look_once(page: Path, plans: Mapping[str, Sequence[Step]]) -> Seen:
    """look(), for several tests in one visit: by name, what its steps returned. They must not disturb one another."""
    results = iter(look(page, *(step for steps in plans.values() for step in steps)))
    return {name: [next(results) for _ in steps] for name, steps in plans.items()}
