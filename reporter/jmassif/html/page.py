# SPDX-License-Identifier: GPL-2.0-or-later
"""One self-contained HTML page: the output of the web build (assets/) with the data of runs in it.

The page may load nothing and run no script but its own: its policy names that script by its hash. The data is text to the
browser, deflated, in base64, and reaches the page's script alone.
"""

import base64
import hashlib
import json
import os
import re
import struct
import zlib
from html import escape
from typing import Any, Callable, Dict, Iterator, Optional, Sequence

from jmassif.analysis.processes import Processes, build_job_report, join
from jmassif.html.cells import shown
from jmassif.html.data import RunData, report_of, run_data
from jmassif.html.first import about_run, first_screen
from jmassif.html.job import job_data, together
from jmassif.model.run import Profile
from jmassif.model.run_info import short_command
from jmassif.render.sources import sources_of
from jmassif.render.view import FormatError, View
from jmassif.version import __version__


# ---- html ----

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ASSETS = os.path.join(_PACKAGE, "assets")

# Version of the data that the page's script reads; see reporter/web/src/runs/data.ts.
DATA_VERSION = 1


class NoAssets(FormatError):
    """The page's script and style are not there. The message is one line: what is missing, and the mend."""


def read_assets(script: str = "page.js") -> Dict[str, str]:
    """Output of `make page` by its places in the shell, with the script of one kind of page. Raises NoAssets."""
    files = {"shell": "page.html", "script": script, "style": "page.css", "licences": "licences.txt"}
    texts = {}
    try:
        for place, name in files.items():
            with open(os.path.join(ASSETS, name), encoding="utf-8") as stream:
                texts[place] = stream.read()
    except OSError:
        raise NoAssets(
            f"the page is not built (no {name} in {ASSETS}): with Node.js 18 or later and npm installed, run make page and"
            " make install where jmassif was built; or take a release, which has it"
        )
    return texts


def pack(
    runs: Sequence[RunData],
    title: str,
    sum_: Optional[Dict[str, Any]] = None,
    difference: Optional[Sequence[str]] = None,
    fleet: Optional[Dict[str, Any]] = None,
) -> bytes:
    """The data as the page reads it: the length of the JSON in 4 bytes, the JSON, the runs' columns one after the other.

    `difference`: of a comparison, the labels of what is compared.
    """
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


def _policy(script: str, is_served: bool) -> str:
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:; base-uri 'none';"
        " form-action 'none'" + ("; connect-src 'self'" if is_served else "")
    )


def fill_page(
    title: str, first: str, packed: bytes, is_served: bool = False, script: str = "page.js", about: str = ""
) -> Iterator[str]:
    """The page with what pack() made in it; `first` is markup, to be read before scripts run. Raises NoAssets.

    `is_served`: a server of its own answers what the page asks for; `about`: a few words beside the title.
    """
    assets = read_assets(script=script)
    parts = {
        **assets,
        "policy": escape(_policy(assets["script"], is_served)),
        "served": "yes" if is_served else "",
        "title": escape(title),
        "about": escape(about),
        "first": first,
        "licences": escape(assets["licences"]),
        "data": base64.b64encode(zlib.compress(packed)).decode("ascii"),
    }
    # Text that is filled in is not searched again.
    yield re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place.group(1)], assets["shell"]).rstrip("\n")


def page(job: Processes, directories: Optional[Sequence[str]], is_served: bool = False) -> Iterator[str]:
    """The page for the processes of a job. Raises FormatError."""
    reports = [report_of(process.profile) for process in job.members]
    sources = [sources_of(report.profile, directories) for report in reports]
    title = shown(short_command(job.members[0].profile.manifest.get("command", "")) or "a recorded run")
    about = about_run(reports[0]) if len(reports) == 1 else f"{len(reports)} processes"
    made = build_job_report(job, [report.names for report in reports]) if len(reports) > 1 else None
    runs = job_data(made, reports, sources) if made else [run_data(reports[0], sources=sources[0])]
    packed = pack(runs, title, together(made) if made else None)
    yield from fill_page(title, first_screen(made, reports), packed, is_served, about=about)


def write(profile: Profile, view: View) -> Iterator[str]:
    """The page for a process. Raises FormatError."""
    yield from page(join([("", profile)]), view.source)


def write_several(job: Processes, view_of: Callable[[Profile], View], is_each: bool) -> Iterator[str]:
    """The page for the processes of a job: each of them, and their sum. Raises FormatError."""
    view = view_of(job.members[0].profile)
    yield from page(job, view.source)
