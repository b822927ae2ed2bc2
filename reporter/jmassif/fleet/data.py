# SPDX-License-Identifier: GPL-2.0-or-later
"""A comparison of groups for programs: jm_fleet(1) describes the JSON."""

import json
from typing import Any, Dict, Iterator

from jmassif.fleet.compare import FleetDifference
from jmassif.fleet.headline import fleet_headline, method
from jmassif.units import unicode_text

FORMAT, VERSION = "jmassif-fleet-difference", 1
_MOST_OUTSIDE = 1000


def as_json(found: FleetDifference) -> Dict[str, Any]:
    return {
        "format": FORMAT,
        "version": VERSION,
        "headline": fleet_headline(found),
        "method": method(found),
        "key": found.key,
        "pool": found.pool,
        "level": found.level,
        "base": found.base,
        "compared": found.n_compared,
        "left_out": found.n_left_out,
        "groups": [{"value": unicode_text(g.value), "label": g.label, "runs": len(g.runs)} for g in found.groups],
        "rows": [
            {
                "view": row.view,
                "name": row.name,
                "groups": [of._asdict() for of in row.groups],
                "changes": [
                    change
                    and {
                        "bytes": change.bytes,
                        "interval": change.interval and list(change.interval),
                        "error": change.allowed,
                        "is_change": change.is_change,
                    }
                    for change in row.changes
                ],
            }
            for row in found.rows
        ],
        "n_outside": len(found.outside),
        "outside": [
            {
                "run": each.run.fields["id"],
                "file": each.run.fields["file"],
                "host": each.run.fields["host"],
                "group": each.group,
                "view": each.view,
                "name": each.name,
                "bytes": each.bytes,
                "median": each.median,
            }
            for each in found.outside[:_MOST_OUTSIDE]
        ],
        "facts": [
            {"key": fact.key, "label": fact.label, "values": [{"value": v, "runs": n} for v, n in fact.values]}
            for fact in found.facts
        ],
    }


def write_json(found: FleetDifference) -> Iterator[str]:
    yield json.dumps(as_json(found), indent=1, ensure_ascii=False)
