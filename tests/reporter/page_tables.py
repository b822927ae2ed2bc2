# SPDX-License-Identifier: GPL-2.0-or-later
"""Tables that the page receives ready to be shown."""

from typing import Any, Dict, List

from jmassif.html.data import report_of, run_data
from jmassif.model.run import Profile


def page_rows(profile: Profile, caption: str) -> List[Dict[str, Any]]:
    """The rows of a table, by the heads of its columns."""
    tables = [table for table in run_data(report_of(profile)).head["tables"] if table["caption"] == caption]
    return [dict(zip((head for head, _ in table["columns"]), row)) for table in tables for row in table["rows"]]
