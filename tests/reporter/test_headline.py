# SPDX-License-Identifier: GPL-2.0-or-later
"""The headline of several processes."""

from typing import List

from jmassif.analysis.headline import HAPPENED, PLACE, Headline
from jmassif.analysis.processes import join
from jmassif.html.data import together
from jmassif.render import processes
from jmassif.render.processes import headline_of_job
from jmassif.render.view import View
from tests.reporter.test_processes import ends, holds, trace_of
from tests.reporter.test_summary import ended


def texts(made: Headline, *abouts: str) -> List[str]:
    return [statement.text for statement in made.about(*abouts)]


def test_several_processes_have_one_peak_in_headline_and_sum() -> None:
    one, two = trace_of(1), trace_of(2, 50, ppid="1")
    for trace in (one, two):
        holds(trace, 0, 0, "start")
        holds(trace, 100, 1000)
        ends(trace, 300)
    job = join([("a", one.load()), ("b", two.load())])
    made = headline_of_job(job)
    peak = job.peak("host")
    assert (made.time, made.held, made.at_most) == (peak.time, peak.on("host"), 2000) == (150, 2000, 2000)
    data = together(job, headline_of_job(job))
    assert data["headline"]["held"] == data["peaks"]["host"]["at_least"]
    report_ = " ".join(" ".join(processes.write(job, lambda _: View(None, 1, "stack", 70, None))).split())
    assert report_.startswith(
        "2 processes: peak 1.95 KiB (sum of ledgers, without PSS), 1000 B of it in process 1, program"
    )
    assert "process 1" in texts(made, PLACE)[0] and "50.0 % of the sum" in texts(made, PLACE)[0]


def test_of_a_job_every_process_that_died_is_named() -> None:
    one, two = trace_of(1), trace_of(2, 50, ppid="1")
    for trace in (one, two):
        holds(trace, 0, 1000, "start")
    made = headline_of_job(join([("a", ended(one).load()), ("b", ended(two, "signal 11").load())]))
    assert texts(made, HAPPENED) == ["Process 2: The program was killed by signal 11 (SIGSEGV) after 9 ms."]
