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

from jmassif.analysis.aggregate import Ledger, Usage, ledger
from jmassif.analysis.headline import HAPPENED, HELP, LEAK, PLACE, POOL, WHOSE, Headline, Statement, headline
from jmassif.analysis.moments import select
from jmassif.analysis.processes import Processes, join, ledger_of
from jmassif.attribution.names import Names
from jmassif.html.cells import shown
from jmassif.html.data import RunData, run_data, together
from jmassif.model.run import Profile
from jmassif.render.processes import headline_of_job
from jmassif.render.view import FormatError, View
from jmassif.render.words import GROUPS
from jmassif.units import percent, size
from jmassif.version import __version__


# ---- first ----
# The first screen of the page, as markup: what happened, the fullest pool, whose it is, where to look first, what would help.
#
# It is in the page itself, before its script and its data, so that it can be read while these are still on their way, and where no
# script runs. Every text is escaped here.

_POOLS = {"machine": "memory", "gpu": "device memory", "cgroup": "the control group's limit"}
# What stands beside the groups in the bar of a pool.
_OTHERS, _FREE, _UNKNOWN = "others", "free", "unknown"
_WORDS = {
    "yours": "yours",
    "cached": "cached, not in use",
    "libraries": "libraries",
    "runtime": "runtime",
    "other": "other owners",
    _OTHERS: "everything else",
    _FREE: "free",
    _UNKNOWN: "not known",
}
# Names of functions may be of any length.
_MOST_TEXT = 1500


class _Part(NamedTuple):
    name: str  # a group, or one of the above
    bytes: int


def _text(statement: Statement) -> str:
    text = statement.text
    return escape(text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}…")


def _paragraph(statement: Statement, more: str = "") -> str:
    return f'<p class="statement {statement.about} {statement.severity}" elementtiming="headline">{_text(statement)}{more}</p>'


def _inside(usage: Usage, made: Headline) -> int:
    """Of an owner or a group, what lies in the pool."""
    return usage.bytes if made.pool is None else made.pool.inside(usage)


def _parts(table: Ledger, made: Headline) -> List[_Part]:
    """What the pool holds, up to its capacity."""
    parts = [_Part(group.name, _inside(group.usage, made)) for group in table.groups]
    if made.pool is not None:
        own = sum(part.bytes for part in parts)
        rest = max(0, made.pool.capacity - own)
        if made.pool.used is None:
            parts.append(_Part(_UNKNOWN, rest))
        else:
            others = min(rest, max(0, made.pool.used - own))
            parts += [_Part(_OTHERS, others), _Part(_FREE, rest - others)]
    return [part for part in parts if part.bytes]


def _bar(made: Headline, table: Ledger) -> str:
    """How full the pool is, and of what."""
    parts = _parts(table, made)
    if not parts:
        return ""
    whole = sum(part.bytes for part in parts)
    own = _inside(table.total, made)
    of = f" of {size(made.pool.capacity)} of {_POOLS[made.pool.key]}" if made.pool else ""
    said = ", ".join(f"{_WORDS[part.name]} {size(part.bytes)}" for part in parts)
    spans = "".join(
        f'<span class="of-{part.name}" style="flex-grow:{part.bytes / whole:.5f}"></span>' for part in parts
    )
    keys = "".join(
        f'<li class="key" data-name="{part.name}" title="{escape(GROUPS.get(part.name, ""))}"><i class="of-{part.name}"></i>{_WORDS[part.name]}'
        f" <b>{size(part.bytes)}</b> {percent(part.bytes, whole)}</li>"
        for part in parts
    )
    return (
        f'<p class="fullest"><span class="large">{size(own)}</span>{escape(of)}, at {escape(made.name)}</p>'
        f'<div class="stack-bar" role="img" aria-label="{escape(said)}">{spans}</div><ul class="legend">{keys}</ul>'
    )


def _markup(made: Headline, table: Ledger) -> str:
    link = (
        f' <a href="#out-of-memory">Its arithmetic, what would have helped, and the map</a>'
        if made.incident is not None
        else ""
    )
    happened = made.about(HAPPENED)
    lines = [_paragraph(each, "" if number else link) for number, each in enumerate(happened)]
    lines.append(_bar(made, table))
    for about in ((POOL, WHOSE), (LEAK,), (PLACE,)):
        lines += [_paragraph(each) for each in made.about(*about)]
    helps = "".join(f"<li>{_text(each)}</li>" for each in made.about(HELP))
    lines.append(f'<ul class="help">{helps}</ul>' if helps else "")
    return "\n".join(line for line in lines if line)


def _of_process(profile: Profile, names: Names) -> str:
    chosen = select(profile, "peak")
    return _markup(headline(profile, names), ledger(profile, chosen.composition))


def _of_job(job: Processes, made: Headline) -> str:
    return _markup(made, ledger_of(job.main_peak))


def first_screen(job: Processes, of_job: Optional[Headline], names: Sequence[Names]) -> str:
    """A part for each run that the page shows, in its order: the sum of several processes, and each of them."""
    screens = [_of_job(job, of_job)] if of_job else []
    screens += [_of_process(process.profile, each) for process, each in zip(job.members, names)]
    return "\n".join(
        f'<div class="first"{" hidden" if number else ""}>{text}</div>' for number, text in enumerate(screens)
    )


# ---- html ----

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
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


def page(job: Processes, directories: Optional[Sequence[str]], is_served: bool = False) -> Iterator[str]:
    """The page for the processes of a job. Raises FormatError."""
    processes = job.members
    share = 1.0 / len(processes)
    runs: List[RunData] = []
    names = [Names(process.profile) for process in processes]
    for process, each in zip(processes, names):
        has_parent = process.shares
        runs.append(run_data(process.profile, share, directories, process.offset, has_parent, each))
    title = shown(processes[0].profile.manifest.get("command", "") or "a recorded run")
    of_job = headline_of_job(job, names) if len(runs) > 1 else None
    packed = pack(runs, title, together(job, of_job) if of_job else None)
    yield from fill_page(title, first_screen(job, of_job, names), packed, is_served)


def write(profile: Profile, view: View) -> Iterator[str]:
    """The page for a process. Raises FormatError."""
    yield from page(join([("", profile)]), view.source)


def write_several(job: Processes, view_of: Callable[[Profile], View], is_each: bool) -> Iterator[str]:
    """The page for the processes of a job: each of them, and their sum. Raises FormatError."""
    view = view_of(job.members[0].profile)
    yield from page(job, view.source)
