# SPDX-License-Identifier: GPL-2.0-or-later
"""One self-contained HTML page: what the reporter's web build made (assets/), with the runs' data in it.

The page may load nothing and run no script but its own: its policy names that script by its hash. The data is text to the
browser, deflated, in base64, and reaches the page's script alone.
"""

import base64
import hashlib
import json
import os
import struct
import zlib
from html import escape
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence

from jmassif.model.profile import Profile
from jmassif.questions.job.headline import headline_of_job
from jmassif.questions.job.processes import Processes, join
from jmassif.version import __version__
from jmassif.whose.names import Names
from jmassif.writers.editor import Editor
from jmassif.writers.page.data import RunData, run_data, together
from jmassif.writers.page.first import first_screen
from jmassif.writers.page.texts import shown
from jmassif.writers.view import FormatError, View

_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ASSETS = os.path.join(_PACKAGE, "assets")

# What the page's script expects; see reporter/web/src/data.js.
DATA_VERSION = 1


class NoAssets(FormatError):
    """The page's script and style are not there. The message is one line: what is missing, and the mend."""


class Assets(NamedTuple):
    shell: str
    script: str
    style: str
    licences: str


def read_assets(directory: Optional[str] = None, script: str = "page.js") -> Assets:
    """What `make page` built, with the script of one kind of page. Raises NoAssets."""
    directory = directory or ASSETS
    texts = []
    try:
        for name in ("page.html", script, "page.css", "licences.txt"):
            with open(os.path.join(directory, name), encoding="utf-8") as stream:
                texts.append(stream.read())
    except OSError:
        raise NoAssets(
            f"the page is not built (no {name} in {directory}): with Node.js 18 or later and npm installed, run make page and"
            " make install where jmassif was built; or take a release, which has it"
        )
    return Assets(*texts)


def pack(
    runs: Sequence[RunData],
    title: str,
    sum_: Optional[Dict[str, Any]] = None,
    difference: Optional[Dict[str, Any]] = None,
    fleet: Optional[Dict[str, Any]] = None,
) -> bytes:
    """The data as the page reads it: the length of the JSON in 4 bytes, the JSON, the runs' columns one after the other."""
    described = []
    at = 0
    for run in runs:
        described.append(dict(run.head, columns_at=at))
        at += len(run.columns)
    head = {
        "version": DATA_VERSION,
        "generator": f"jmassif {__version__}",
        "title": title,
        "together": sum_,
        "difference": difference,
        "fleet": fleet,
        "runs": described,
    }
    text = json.dumps(head, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "backslashreplace")
    return struct.pack("<I", len(text)) + text + b"".join(run.columns for run in runs)


# What a page may reach that comes from a server of its own, and how it knows.
_SERVED = "yes"


def _policy(assets: Assets, is_served: bool) -> str:
    digest = base64.b64encode(hashlib.sha256(assets.script.encode("utf-8")).digest()).decode("ascii")
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:; base-uri 'none';"
        " form-action 'none'" + ("; connect-src 'self'" if is_served else "")
    )


def _fill(shell: str, parts: Sequence[str]) -> Iterator[str]:
    """The shell with its places, `{{name}}`, filled in. What is filled in is not looked at again."""
    names = ("policy", "served", "title", "style", "title", "first", "licences", "data", "script")
    at = 0
    for name, text in zip(names, parts):
        place = shell.index("{{%s}}" % name, at)
        yield shell[at:place]
        yield text
        at = place + len(name) + 4
    yield shell[at:]


def fill_page(title: str, first: str, packed: bytes, is_served: bool = False, script: str = "page.js") -> Iterator[str]:
    """The page with what pack() made in it; `first` is markup, to be read before scripts run. Raises NoAssets.

    `is_served`: a server of its own answers what the page asks for.
    """
    assets = read_assets(script=script)
    parts = (
        escape(_policy(assets, is_served)),
        _SERVED if is_served else "",
        escape(title),
        assets.style,
        escape(title),
        first,
        escape(assets.licences),
        base64.b64encode(zlib.compress(packed, 8)).decode("ascii"),
        assets.script,
    )
    yield "".join(_fill(assets.shell, parts)).rstrip("\n")


def page(
    job: Processes, directories: Optional[Sequence[str]], is_served: bool = False, editor: Optional[Editor] = None
) -> Iterator[str]:
    """The page for the processes of a job. Raises FormatError."""
    processes = job.members
    share = 1.0 / len(processes)
    runs: List[RunData] = []
    names = [Names(process.profile) for process in processes]
    for process, each in zip(processes, names):
        has_parent = process.shares
        runs.append(run_data(process.profile, share, directories, process.offset, has_parent, each, editor))
    title = shown(processes[0].profile.manifest.get("command", "") or "a recorded run")
    of_job = headline_of_job(job, names) if len(runs) > 1 else None
    packed = pack(runs, title, together(job, of_job) if of_job else None)
    yield from fill_page(title, first_screen(job, of_job, names), packed, is_served)


def write(profile: Profile, view: View) -> Iterator[str]:
    """The page for a process. Raises FormatError."""
    yield from page(join([("", profile)]), view.source, editor=view.editor)


def write_several(job: Processes, view_of: Callable[[Profile], View], is_each: bool) -> Iterator[str]:
    """The page for the processes of a job: each of them, and their sum. Raises FormatError."""
    view = view_of(job.members[0].profile)
    yield from page(job, view.source, editor=view.editor)
