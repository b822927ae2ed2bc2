# SPDX-License-Identifier: GPL-2.0-or-later
"""Who holds what, over all processes of a job."""

from typing import Dict

from jmassif.questions.job.processes import Processes
from jmassif.questions.ledger import Ledger, LedgerRow, ledger, ledger_of_rows


def ledger_of(processes: Processes, time: int, measure: str = "total") -> Ledger:
    """At `time` on the common clock: of each process what it last told, without what it inherited; `measure`: see moments.py."""
    owners: Dict[str, LedgerRow] = {}
    group_of: Dict[str, str] = {}
    for process, composition in processes.compositions(time, measure):
        for group, rows in ledger(process.profile, composition).groups:
            for row in rows:
                group_of[row.name] = group.name
                before = owners.get(row.name, LedgerRow(row.name))
                owners[row.name] = before.plus("host", *row.host).plus("device", *row.device)
    return ledger_of_rows(owners.values(), group_of)
