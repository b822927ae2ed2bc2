# SPDX-License-Identifier: GPL-2.0-or-later
"""Several processes on one page: the moment that the page shows as their peak is the one that the headline tells of."""

import base64
import zlib
from typing import Any, Dict, List, Tuple

from jmassif.analysis.processes import Processes, build_job_report, ledger_of
from jmassif.html.data import report_of
from jmassif.html.job import job_data, together
from jmassif.html.page import pack
from tests.reporter.test_processes import ends, family, holds, joined, trace_of
from tests.web.browser import in_node

ASK = """
import { unpack } from "./src/runs/data.js";
import { partsOf } from "./src/runs/parts.js";
import { Run } from "./src/runs/run.js";
import { sum } from "./src/runs/sum.js";
import { readFileSync } from "node:fs";
const answers = [];
for (const text of JSON.parse(readFileSync(0, "utf8"))) {
    const { runs: [whole, ...each], together } = await unpack(text);
    const run = sum(whole, each.map((data) => new Run(partsOf(data))), together);
    const { peak } = run.head.at;
    const { time, host, device } = run.moments[peak];
    answers.push({ time, host, device, owners: run.sums("owner", peak).map(({ host, device }, i) => [run.head.owners[i].name, host + device]) });
}
console.log(JSON.stringify(answers));
"""


def packed(job: Processes) -> str:
    made = build_job_report(job)
    runs = job_data(made, [report_of(each.profile) for each in job.members], [None] * len(job.members))
    return base64.b64encode(zlib.compress(pack(runs, "a job", together(made)))).decode()


def equal_peaks() -> Processes:
    """Two processes that hold as much together at two times, and one of them is killed."""
    one, two = trace_of(1), trace_of(2, 0, ppid="1")
    for trace, first, second in ((one, 4000, 1000), (two, 1000, 4000)):
        holds(trace, 0, 0, "start")
        holds(trace, 100, first)
        holds(trace, 200, second, total=8000)
    holds(two, 300, 500, total=9000)
    holds(one, 500, 900, total=9000)
    return joined(ends(one, 600), two)


def several_in_a_millisecond() -> Processes:
    """One process frees before the other allocates, all at 100 ms."""
    one, two = trace_of(1), trace_of(2, 0, ppid="1")
    for trace, held in ((one, (4000, 100, 3000)), (two, (100, 4000, 200))):
        holds(trace, 0, 0, "start")
        for n_bytes in held:
            holds(trace, 100, n_bytes, total=9000)
    return joined(ends(one, 600), ends(two, 600))


def shown(job: Processes) -> Tuple[int, int, List[Any]]:
    table = ledger_of(job.main_peak)
    owners = {row.name: row.bytes for row in table.owners if row.bytes}
    return job.main_peak.host, job.main_peak.device, sorted(owners.items())


def test_the_peak_of_the_page_is_that_of_the_headline() -> None:
    shares = (2, 200, {"pss": 340, "pid1": 350, "pid3": 330})
    jobs = [equal_peaks(), family(), family(shares), several_in_a_millisecond()]
    answers: List[Dict[str, Any]] = in_node(ASK, [packed(job) for job in jobs])
    for number, (job, answer) in enumerate(zip(jobs, answers)):
        owners = sorted((name, n_bytes) for name, n_bytes in answer["owners"] if n_bytes)
        assert (answer["host"], answer["device"], owners) == shown(job), number
        assert answer["time"] <= job.main_peak.time, number
