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
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

from jmassif.analysis.processes import JobReport, Processes, build_job_report, join
from jmassif.analysis.summary import LESS, Ladder, LineUsage, Report
from jmassif.html.cells import shown
from jmassif.html.data import RunData, report_of, run_data, said_of, together
from jmassif.model.run import Profile
from jmassif.render.job import Statement, adjustment_rows, statements
from jmassif.render.ladder import footnote, has_steps, rows_of as ladder_rows, title_of
from jmassif.render.sources import Sources, sources_of
from jmassif.render.summary import whole_percent
from jmassif.render.view import FormatError, View
from jmassif.render.words import GROUP_NAMES, GROUPS
from jmassif.units import size
from jmassif.version import __version__


# ---- first ----
# The first screen as markup, in the page before its script and its data: readable while these load, and without scripts.
# Verdict, findings, ladder and largest lines of a Report. Every text is escaped here.

_MOST_TEXT = 1500  # names of functions may be of any length
_LINES_SHOWN = 4
# Groups of owners that lend rungs their colours; other rungs are not the program's.
_GROUP_OF = {"cache": "cached", "own": "yours", "own-code": "yours", "allocated": "yours"}


def _text(text: str) -> str:
    return escape(text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}…")


def _paragraph(said: Statement, more: str = "") -> str:
    return f'<p class="statement {said.about} {said.severity}" elementtiming="headline">{_text(said.text)}{more}</p>'


def _colour(key: str) -> str:
    group = _GROUP_OF.get(key, key)
    return group if group in GROUP_NAMES else "others"


def _bar(parts: Sequence[Tuple[str, str, int]]) -> str:
    """A bar of parts: colours, names and bytes."""
    whole = sum(n_bytes for _, _, n_bytes in parts) or 1
    said = ", ".join(f"{name} {size(n_bytes)}" for _, name, n_bytes in parts)
    spans = "".join(
        f'<span class="of-{colour}" style="flex-grow:{n_bytes / whole:.5f}" title="{escape(name)}: {size(n_bytes)}"></span>'
        for colour, name, n_bytes in parts
    )
    return f'<div class="stack-bar" role="img" aria-label="{escape(said)}">{spans}</div>'


def _ladder(report: Report, ladder: Ladder) -> str:
    """The bar of what the top figure holds, and the rows that lead to the bottom one."""
    rows = list(zip(ladder.rungs, ladder_rows(report.run.is_pytorch, ladder).rows))
    lines, parts = [], []
    for rung, row in rows:
        is_part = rung.role == LESS or rung is ladder.rungs[-1]
        if is_part and rung.bytes:
            parts.append((_colour(rung.key), row.label.lstrip("-= "), rung.bytes))
        key = f'<i class="of-{_colour(rung.key)}"></i>' if is_part else ""
        lines.append(
            f'<tr class="{"sum" if row.is_sum else "part"}" data-key="{rung.key}" data-bytes="{rung.bytes}">'
            f'<th scope="row" title="{escape(GROUPS.get(_GROUP_OF.get(rung.key, rung.key), ""))}">{key}{_text(row.label)}</th><td class="figure" title="{rung.bytes:,} bytes">{row.number:,}</td></tr>'
        )
    note = footnote(report.run.is_pytorch, ladder)
    return (
        f'<div class="ladder"><table><caption>{_text(title_of(report, ladder))}</caption><tbody>{"".join(lines)}</tbody></table>'
        f'{_bar(parts)}{f"<p class=quiet>{_text(note)}</p>" if note else ""}</div>'
    )


def _lines(report: Report, sources: Optional[Sources]) -> str:
    """The largest lines, with their source text where it may be shown: tensors, cache, and all."""
    space, whole = report.wholes[0].space, report.wholes[0].bytes
    shown_ = [row for row in report.lines[:_LINES_SHOWN] if row.usage.on(space)]
    if not shown_:
        return ""
    figures: List[Tuple[str, str, Callable[[LineUsage], int]]] = [
        ("tensors", "figure minor", lambda row: row.tensors),
        ("cache", "figure minor", lambda row: row.cache),
        ("total", "figure", lambda row: row.usage.on(space)),
    ]
    figures = [each for each in figures if any(map(each[2], shown_))]
    heads = "".join(f'<th scope="col" class="{kind}">{head}</th>' for head, kind, _ in figures)
    rows = []
    for row in shown_:
        text = sources.line(row.path, row.number) if sources and row.path else ""
        source = f' <code title="{escape(text)}">{escape(text)}</code>' if text else ""
        cells = "".join(
            f'<td class="{kind}" title="{of(row):,} bytes">{size(of(row)) if of(row) else "–"}</td>'
            for _, kind, of in figures
        )
        share = whole_percent(row.usage.on(space), whole)
        rows.append(f'<tr><th scope="row">{_text(row.label)}{source}</th>{cells}<td class="figure">{share}</td></tr>')
    of_what = "of the program" if not space else f"of its {space} memory"
    return (
        f'<table class="largest"><caption>Largest lines, at {escape(report.moment.name)}; shares {of_what}</caption>'
        f'<thead><tr><th scope="col">line</th>{heads}<th scope="col" class="figure">share</th></tr></thead>'
        f'<tbody>{"".join(rows)}</tbody></table>'
    )


def _of_process(report: Report, sources: Optional[Sources]) -> str:
    link = ' <a href="#out-of-memory">Details</a>' if report.outcome.failed else ""
    said = [_paragraph(each, "" if number else link) for number, each in enumerate(said_of(report))]
    ladders = "".join(_ladder(report, ladder) for ladder in filter(has_steps, report.ladders))
    return f'<div class="said">{"".join(said)}{_lines(report, sources)}</div>{ladders}'


def _of_job(made: JobReport) -> str:
    groups = [(each.name, GROUP_NAMES[each.name], each.bytes) for each in made.ledger.groups if each.bytes]
    rows = groups + [("", label, n_bytes) for label, n_bytes in adjustment_rows(made)]
    keys = "".join(
        f'<li class="key" data-name="{name}"><i class="of-{name}"></i>{escape(text)} <b>{size(n_bytes)}</b></li>'
        for name, text, n_bytes in rows
    )
    bar = f'{_bar(groups)}<ul class="legend">{keys}</ul>' if groups else ""
    said = "".join(map(_paragraph, statements(made)))
    return f'<div class="said">{said}{bar}</div>'


def first_screen(job: Optional[JobReport], reports: Sequence[Report], sources: Sequence[Optional[Sources]] = ()) -> str:
    """A part for each run that the page shows, in its order: the sum of several processes, and each of them.

    `sources` are those of each report; none: no source text.
    """
    screens = [_of_job(job)] if job else []
    screens += map(_of_process, reports, sources or [None] * len(reports))
    return "\n".join(
        f'<div class="first"{" hidden" if number else ""}>{text}</div>' for number, text in enumerate(screens)
    )


# ---- html ----

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ASSETS = os.path.join(_PACKAGE, "assets")

# Version of the data that the page's script reads; see reporter/web/src/runs/data.js.
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


def _policy(script: str, is_served: bool) -> str:
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:; base-uri 'none';"
        " form-action 'none'" + ("; connect-src 'self'" if is_served else "")
    )


def fill_page(title: str, first: str, packed: bytes, is_served: bool = False, script: str = "page.js") -> Iterator[str]:
    """The page with what pack() made in it; `first` is markup, to be read before scripts run. Raises NoAssets.

    `is_served`: a server of its own answers what the page asks for.
    """
    assets = read_assets(script=script)
    parts = {
        **assets,
        "policy": escape(_policy(assets["script"], is_served)),
        "served": "yes" if is_served else "",
        "title": escape(title),
        "first": first,
        "licences": escape(assets["licences"]),
        "data": base64.b64encode(zlib.compress(packed)).decode("ascii"),
    }
    # Text that is filled in is not searched again.
    yield re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place.group(1)], assets["shell"]).rstrip("\n")


def page(job: Processes, directories: Optional[Sequence[str]], is_served: bool = False) -> Iterator[str]:
    """The page for the processes of a job. Raises FormatError."""
    share = 1.0 / len(job.members)
    reports = [report_of(process.profile) for process in job.members]
    sources = [sources_of(report.profile, directories) for report in reports]
    runs = [
        run_data(report, share, of, process.offset, process.shares)
        for process, report, of in zip(job.members, reports, sources)
    ]
    title = shown(job.members[0].profile.manifest.get("command", "") or "a recorded run")
    made = build_job_report(job, [report.names for report in reports]) if len(runs) > 1 else None
    packed = pack(runs, title, together(made) if made else None)
    yield from fill_page(title, first_screen(made, reports, sources), packed, is_served)


def write(profile: Profile, view: View) -> Iterator[str]:
    """The page for a process. Raises FormatError."""
    yield from page(join([("", profile)]), view.source)


def write_several(job: Processes, view_of: Callable[[Profile], View], is_each: bool) -> Iterator[str]:
    """The page for the processes of a job: each of them, and their sum. Raises FormatError."""
    view = view_of(job.members[0].profile)
    yield from page(job, view.source)
