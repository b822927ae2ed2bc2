# SPDX-License-Identifier: GPL-2.0-or-later
"""What a line holds by itself and with all that it called, of a script whose bytes are known."""

from pathlib import Path

from jmassif.analysis.lines import line_rows, total, with_totals
from jmassif.analysis.moments import select
from jmassif.attribution.names import Names
from jmassif.attribution.views import charges, totals
from tests.harness import PYTHON, record

MIB = 1 << 20
# Bytearrays of this size are blocks of malloc, one each, and a few dozen bytes besides.
SCRIPT = f"""\
def inner():
    return bytearray({5 * MIB})

def outer():
    mine = bytearray({3 * MIB})
    return mine, inner(), inner()

kept = outer()
also = inner()
"""
SLACK = 16 << 10


def test_own_is_what_a_line_made_and_total_what_all_made_that_it_called(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    profile = record([PYTHON, "-S", "-E", script]).profile
    names, peak = Names(profile), select(profile, "peak").composition
    charged = charges(profile, names, "python-line", True)
    own = line_rows(profile, charged, peak, {})
    rows = with_totals(profile, own, totals(profile, names, "python-line", True), peak)
    found = {row.charged.label: row for row in rows}
    expected = {2: (15, 15), 5: (3, 3), 6: (0, 10), 8: (0, 13), 9: (0, 5)}
    for line, (own_mib, total_mib) in expected.items():
        figures = found[f"script.py:{line}"]
        assert own_mib * MIB <= figures.held.host_bytes <= own_mib * MIB + SLACK, line
        assert total_mib * MIB <= figures.total.host_bytes <= total_mib * MIB + SLACK, line
    assert total(rows).held.host_bytes == profile.peaks["total"].host
