# SPDX-License-Identifier: GPL-2.0-or-later
"""The first screen of the page, as markup: what happened, the fullest pool, whose it is, where to look first, what would help.

It is in the page itself, before its script and its data, so that it can be read while these are still on their way, and where no
script runs. Every text is escaped here.
"""

from html import escape
from typing import List, NamedTuple, Optional, Sequence

from jmassif.model.profile import Profile
from jmassif.questions.headline import HAPPENED, HELP, LEAK, PLACE, POOL, WHOSE, Headline, Statement, headline
from jmassif.questions.job.headline import main_measure
from jmassif.questions.job.owners import ledger_of
from jmassif.questions.job.processes import Processes
from jmassif.questions.ledger import Ledger, LedgerRow, ledger
from jmassif.questions.moments import select
from jmassif.units import percent, size
from jmassif.whose.names import Names
from jmassif.whose.owners import GROUPS

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


def _inside(row: LedgerRow, made: Headline) -> int:
    """Of an owner or a group, what lies in the pool."""
    return row.bytes if made.pool is None else made.pool.inside(row.host.bytes, row.device.bytes)


def _parts(table: Ledger, made: Headline) -> List[_Part]:
    """What the pool holds, up to its capacity."""
    parts = [_Part(group.name, _inside(group, made)) for group, _ in table.groups]
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
    of = f" of {size(made.pool.capacity)} of {made.pool.name}" if made.pool else ""
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
    return _markup(made, ledger_of(job, made.time, main_measure(job)))


def first_screen(job: Processes, of_job: Optional[Headline], names: Sequence[Names]) -> str:
    """A part for each run that the page shows, in its order: the sum of several processes, and each of them."""
    screens = [_of_job(job, of_job)] if of_job else []
    screens += [_of_process(process.profile, each) for process, each in zip(job.members, names)]
    return "\n".join(
        f'<div class="first"{" hidden" if number else ""}>{text}</div>' for number, text in enumerate(screens)
    )
