# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs that are not ours and read what the writers write. Those that a machine lacks are None, or skip their tests."""

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence

from tests.harness import BUILD

PROFILE_PROTO = Path("/usr/share/gocode/src/github.com/google/pprof/proto/profile.proto")
SPEEDSCOPE = BUILD / "consumers" / "node_modules" / "speedscope" / "dist" / "release"
CHROMIUM = shutil.which("chromium")


def output_of(*command: object, stdin: bytes = b"") -> str:
    """What the program prints; it has to succeed."""
    done = subprocess.run([str(part) for part in command], input=stdin, stdout=-1, stderr=-1, timeout=120)
    assert done.returncode == 0, done.stderr.decode("utf-8", "replace")
    return done.stdout.decode("utf-8")


class Browser:
    """A headless Chromium that is told what to do through two pipes."""

    def __init__(self) -> None:
        assert CHROMIUM
        self._home = tempfile.mkdtemp(prefix="jmassif-chromium-")
        for_browser, self._to = os.pipe()
        self._from, by_browser = os.pipe()

        def connect() -> None:
            # It reads from 3 and writes to 4, which either pipe may have as its own number.
            reading, writing = os.dup(for_browser), os.dup(by_browser)
            os.dup2(reading, 3)
            os.dup2(writing, 4)

        options = ["--headless=new", "--no-sandbox", "--remote-debugging-pipe", f"--user-data-dir={self._home}"]
        options += ["--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--allow-file-access-from-files"]
        self._process = subprocess.Popen(
            [CHROMIUM] + options + ["about:blank"], preexec_fn=connect, close_fds=False, stderr=subprocess.DEVNULL
        )
        os.close(for_browser)
        os.close(by_browser)
        self._received = b""
        self._n_sent = 0
        self._session: Optional[str] = None

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._to)
        os.close(self._from)
        shutil.rmtree(self._home, ignore_errors=True)

    def _call(self, method: str, **parameters: Any) -> Dict[str, Any]:
        self._n_sent += 1
        message: Dict[str, Any] = {"id": self._n_sent, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        pending = json.dumps(message).encode() + b"\0"
        while pending:
            pending = pending[os.write(self._to, pending) :]
        while True:
            while b"\0" not in self._received:
                piece = os.read(self._from, 1 << 20)
                assert piece, "Chromium has ended"
                self._received += piece
            text, _, self._received = self._received.partition(b"\0")
            answer: Dict[str, Any] = json.loads(text.decode())
            if answer.get("id") == self._n_sent:
                assert "error" not in answer, answer
                result: Dict[str, Any] = answer["result"]
                return result

    def open(self, url: str) -> None:
        target = self._call("Target.createTarget", url=url)["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def run(self, script: str) -> Any:
        """The value of an expression of JavaScript."""
        result = self._call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def wait(self, script: str, seconds: float = 30) -> Any:
        """The first true value of the expression."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            value = self.run(script)
            if value:
                return value
            time.sleep(0.05)
        raise AssertionError(f"{script}: not within {seconds} s")


class SpeedscopeProfile:
    """What speedscope made of a file: self weights by the name of the frame."""

    def __init__(self, exported: Dict[str, Any], frames: Sequence[Dict[str, Any]]) -> None:
        self.name: str = exported["name"]
        self.unit: str = exported["unit"]
        self.total: int = exported["endValue"] - exported["startValue"]
        self.own: Dict[str, int] = {}
        stack: List[int] = []
        at = exported["startValue"]
        for event in exported["events"]:
            if stack:
                name = frames[stack[-1]]["name"]
                self.own[name] = self.own.get(name, 0) + event["at"] - at
            at = event["at"]
            if event["type"] == "O":
                stack.append(event["frame"])
            else:
                assert stack.pop() == event["frame"]
        assert not stack
        self.own = {name: weight for name, weight in self.own.items() if weight}


class Speedscope:
    """The real program in a browser. It imports a file, and what it exports then tells what it has understood."""

    def __init__(self) -> None:
        self._browser = Browser()
        self._browser.open(f"file://{SPEEDSCOPE}/index.html#localProfilePath={os.devnull}")
        self._browser.wait("window.speedscope && 1")
        self._browser.run(
            """
            window.alert = text => { window.said = text; };
            const RealBlob = Blob;
            window.Blob = function (parts, options) {
                window.exported = parts[0];
                return new RealBlob(parts, options);
            };
            1
            """
        )

    def close(self) -> None:
        self._browser.close()

    def open(self, name: str, content: bytes) -> List[SpeedscopeProfile]:
        text = json.dumps(base64.b64encode(content).decode())
        self._browser.run("window.said = window.exported = document.title = ''; 1")
        self._browser.run(f"window.speedscope.loadFileFromBase64({json.dumps(name)}, {text}); 1")
        self._browser.wait("document.title || window.said")
        assert not self._browser.run("window.said")
        export = "[...document.querySelectorAll('div')].find(e => !e.children[1] && /Export$/.test(e.innerText || ''))"
        self._browser.wait(f"{export} && ({export}.click(), 1)")
        exported = json.loads(self._browser.wait("window.exported"))
        return [SpeedscopeProfile(profile, exported["shared"]["frames"]) for profile in exported["profiles"]]
