# SPDX-License-Identifier: GPL-2.0-or-later
"""What marks on tests ask for: limits, as they are written."""

from typing import Any, Dict, List, NamedTuple, Sequence

from jmassif.units import QuantityError, parse_size, printable

POOLS = ("host", "device", "total")
LEAKS = "leaks"
MARKS = ("limit_memory", "limit_leaks")


class LimitError(Exception):
    """A mark's arguments are no limit. The message is one line that says what would be one."""


class Limit(NamedTuple):
    what: str  # one of POOLS, or LEAKS
    bytes: int
    text: str  # as written


def _size(call: str, value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    if not isinstance(value, str):
        raise LimitError(f'{call}: {printable(repr(value))} is no size: write "200 MB"')
    try:
        return parse_size(value)
    except QuantityError as error:
        raise LimitError(f"{call}: {printable(str(error))}") from None


def limit_of(mark: str, arguments: Sequence[Any], named: Dict[str, Any]) -> Limit:
    """Of @pytest.mark.MARK(*arguments, **named). Raises LimitError."""
    shown = [repr(argument) for argument in arguments] + [f"{name}={value!r}" for name, value in named.items()]
    call = printable(f"{mark}({', '.join(shown)})")
    if mark == "limit_leaks":
        if named or len(arguments) != 1:
            raise LimitError(f'{call}: write limit_leaks("1 MB")')
        return Limit(LEAKS, _size(call, arguments[0]), str(arguments[0]))
    if named or len(arguments) not in (1, 2):
        raise LimitError(f'{call}: write limit_memory("200 MB") or limit_memory("device", "200 MB")')
    pool = arguments[0] if len(arguments) == 2 else "host"
    if pool not in POOLS:
        raise LimitError(f'{call}: {printable(repr(pool))} is none of "host", "device" and "total"')
    return Limit(pool, _size(call, arguments[-1]), str(arguments[-1]))


def limits_of(item: Any) -> List[Limit]:
    """Of a test: of each pool, and of leaks, the mark that is nearest to it. Raises LimitError, with the test's name."""
    found: Dict[str, Limit] = {}
    for mark in item.iter_markers():
        if mark.name in MARKS:
            try:
                limit = limit_of(mark.name, mark.args, mark.kwargs)
            except LimitError as error:
                raise LimitError(f"{printable(item.nodeid)}: {error}") from None
            found.setdefault(limit.what, limit)
    return list(found.values())
