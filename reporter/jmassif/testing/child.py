# SPDX-License-Identifier: GPL-2.0-or-later
"""Below Valgrind: runs the tests, names them to the recorder, and tells the process above what comes of them, a line of JSON each.

A test with limits is a stage, from a full collection of garbage to another. It is the test's own function that counts, without
its fixtures.
"""

import gc
import json
import os
from typing import Any, Iterator

import pytest

from jmassif.annotate import is_recording, region, stage
from jmassif.testing.limits import LimitError, limits_of
from jmassif.testing.verdicts import BEGIN, END


class Child:
    def __init__(self, config: Any, channel: str) -> None:
        descriptor = int(channel)
        os.set_inheritable(descriptor, False)
        self._config = config
        self._channel = os.fdopen(descriptor, "w", encoding="utf-8")
        self._n_stages = 0
        # The process above shows what there is to be shown.
        config.pluginmanager.unregister(name="terminalreporter")
        self._tell("ready", is_recording=is_recording())

    def _tell(self, event: str, **fields: Any) -> None:
        json.dump({"event": event, **fields}, self._channel)
        self._channel.write("\n")
        self._channel.flush()

    def _tell_report(self, event: str, report: Any) -> None:
        hook = self._config.hook
        self._tell(event, report=hook.pytest_report_to_serializable(config=self._config, report=report))

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: Any) -> None:
        try:
            for item in items:
                limits_of(item)
        except LimitError as error:
            self._tell("usage", text=str(error))
            pytest.exit(str(error), returncode=4)

    def pytest_collection_finish(self, session: Any) -> None:
        self._tell("collected", tests=len(session.items))

    def pytest_collectreport(self, report: Any) -> None:
        if not report.passed:
            self._tell_report("collectreport", report)

    def pytest_deselected(self, items: Any) -> None:
        self._tell("deselected", tests=len(items))

    def pytest_runtest_logstart(self, nodeid: str, location: Any) -> None:
        self._tell("start", nodeid=nodeid, location=list(location))

    def pytest_runtest_logreport(self, report: Any) -> None:
        self._tell_report("report", report)

    def pytest_runtest_logfinish(self, nodeid: str, location: Any) -> None:
        self._tell("finish", nodeid=nodeid, location=list(location))

    @pytest.hookimpl(hookwrapper=True, trylast=True)
    def pytest_runtest_call(self, item: Any) -> Iterator[None]:
        limits = limits_of(item)
        if not limits:
            with region(item.nodeid):
                yield
            return
        self._n_stages += 1
        number = str(self._n_stages)
        self._tell("limits", nodeid=item.nodeid, number=number, limits=[list(limit) for limit in limits])
        with region(item.nodeid):
            gc.collect()
            stage(BEGIN + number)
            yield
            gc.collect()
            stage(END + number)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: Any, exitstatus: int) -> None:
        text = str(session.shouldfail or session.shouldstop or "")
        self._tell("end", status=int(exitstatus), text=text)
