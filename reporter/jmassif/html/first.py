# SPDX-License-Identifier: GPL-2.0-or-later
"""The first screen: what the Report says at the moments that have a name, for the page's script, and as markup.

The markup is in the page before its script and its data: readable while these load. Every text is escaped here.
"""

import re
from html import escape
from typing import List, Optional, Sequence

from jmassif.analysis.moments import select
from jmassif.analysis.processes import JobReport
from jmassif.analysis.summary import ALARM, NOTE, Ladder, Report, build_report
from jmassif.html.cells import shown
from jmassif.html.head import ChosenMoments, NamedReport, ShownLadder, ShownLine, ShownRung
from jmassif.model.run_info import recorded
from jmassif.render import summary
from jmassif.render.job import Statement, statements
from jmassif.render.ladder import footnote, has_steps, rows_of as ladder_rows, title_of
from jmassif.render.sources import Sources
from jmassif.render.words import GROUP_NAMES
from jmassif.units import moment, size


_MOST_TEXT = 1000  # names of functions may be of any length


def said_of(report: Report) -> List[Statement]:
    if not report.profile.snapshots:
        return [Statement("verdict", NOTE, "No memory is on record here.")]
    severity = ALARM if report.outcome.severity == ALARM else NOTE
    said = [Statement("verdict", severity, summary.verdict(report))]
    # How the run ended stands beside the title.
    known = f"{summary.ending(report.outcome)}.".capitalize()
    said += [Statement("remark", each.severity, each.text) for each in summary.remarks(report) if each.text != known]
    said += [
        Statement("moment", NOTE, text) for text in (summary.filtered(report), summary.other_moment(report)) if text
    ]
    return said + [Statement("finding", NOTE, each.text, each.to_do) for each in summary.findings(report)]


def statements_data(said: Sequence[Statement]) -> List[Statement]:
    """Each cut as two texts, so that the action stays the end of the whole, however long the evidence is."""
    found = []
    for each in said:
        action = shown(each.action, _MOST_TEXT)
        evidence = shown(each.text[: len(each.text) - len(each.action)].rstrip(), _MOST_TEXT)
        found.append(each._replace(text=" ".join(filter(None, (evidence, action))), action=action))
    return found


_LINES_SHOWN = 6
# The groups of owners behind rungs; other rungs are not the program's.
_GROUP_OF = {"cache": "cached", "own": "yours", "own-code": "yours", "allocated": "yours"}


def group_of_rung(key: str) -> str:
    """ "others" for what is not the program's."""
    group = _GROUP_OF.get(key, key)
    return group if group in GROUP_NAMES else "others"


def when(report: Report) -> str:
    at = moment(report.moment.time, report.run.time_unit)
    return f"peak, at {at}" if report.moment.is_peak else f"at {report.moment.name}, {at}"


def capacity(report: Report) -> str:
    """ "of the board's 4.00 GiB"; "" where that is no concern."""
    return summary.of_pool(report, report.wholes[0].bytes).strip()


def about_run(report: Report) -> str:
    """ "exit status 0 · 2.26 s · Jetson Nano" """
    profile = report.profile
    board = shown(profile.manifest.get("board", ""))
    ran = summary.ending(report.outcome), moment(profile.last_time, profile.time_unit)
    return " · ".join(filter(None, [*ran, board, shown(recorded(profile))]))


def lines_shown(report: Report, sources: Optional[Sources]) -> List[ShownLine]:
    """The largest lines, with their source text where it may be shown."""
    space = report.wholes[0].space
    rows = [row for row in report.lines[:_LINES_SHOWN] if row.usage.on(space)]
    texts = (sources.line(row.path, row.number) if sources and row.path else "" for row in rows)
    return [
        ShownLine(shown(row.label), shown(row.path), shown(text), row.tensors, row.cache, row.usage.on(space))
        for row, text in zip(rows, texts)
    ]


def _ladder(report: Report, ladder: Ladder) -> ShownLadder:
    is_pytorch = report.run.is_pytorch
    rows = [
        ShownRung(rung.key, rung.role, rung.bytes, shown(row.label), row.number, group_of_rung(rung.key))
        for rung, row in zip(ladder.rungs, ladder_rows(is_pytorch, ladder).rows)
    ]
    return ShownLadder(ladder.pool, title_of(report, ladder), footnote(is_pytorch, ladder), rows)


def _named(report: Report, index: int, sources: Optional[Sources]) -> NamedReport:
    return NamedReport(
        index,
        report.moment.name,
        when(report),
        capacity(report),
        report.wholes[0].space,
        [(each.space, each.bytes) for each in report.wholes],
        statements_data(said_of(report)),
        [_ladder(report, ladder) for ladder in filter(has_steps, report.ladders)],
        lines_shown(report, sources),
    )


def reports(report: Report, at: ChosenMoments, sources: Optional[Sources]) -> List[NamedReport]:
    """The report's moment, the peak and the end, each once: the same analyses as for the text."""
    found = {at.first: report}
    for name in ("peak", "end"):
        index = getattr(at, name)
        if index >= 0 and index not in found:
            found[index] = build_report(report.profile, select(report.profile, name), report.names)
    return [_named(each, index, sources) for index, each in found.items()]


# ---- markup ----


def _text(text: str) -> str:
    return escape(text if len(text) <= 2 * _MOST_TEXT else f"{text[:2 * _MOST_TEXT]}…")


def sentence(text: str) -> str:
    """With the names that stand in backticks as code."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", _text(text))


def _paragraph(said: Statement) -> str:
    return f'<p class="statement {said.about} {said.severity}" elementtiming="headline">{sentence(said.text)}</p>'


def _figure(of: NamedReport) -> str:
    figures = " ".join(f"<b>{size(n_bytes)}</b> {escape(space)}" for space, n_bytes in of.figures)
    return f'<p class="size" elementtiming="headline">{figures} {_text(of.when)} <span class="quiet">{_text(of.capacity)}</span></p>'


def first_screen(job: Optional[JobReport], reports_: Sequence[Report]) -> str:
    """Of the run with which the page opens: the sum of several processes, else the one."""
    if job is not None:
        return "".join(map(_paragraph, statements(job)))
    of = _named(reports_[0], 0, None)
    return _figure(of) + "".join(map(_paragraph, of.statements))
