# SPDX-License-Identifier: GPL-2.0-or-later
"""Mapped memory on the page: resident against virtual, at the moment that was chosen."""

from pathlib import Path

from tests.reporter.test_page_mapped import mapping_run, model
from tests.reporter.traces import small_training_run
from tests.web.browser import look, write_page

TABLE = "#mapped .table"
ROWS = ["rows", f"{TABLE} tbody"]


def test_resident_and_virtual_follow_the_moment(tmp_path: Path) -> None:
    trace = mapping_run()
    profile = trace.load()
    at_peak, total, _, last = look(
        write_page(tmp_path, trace.save(tmp_path)),
        ROWS,
        ["rows", f"{TABLE} tfoot"],
        ["pick", "#timeline .u-over", 0.999],
        ROWS,
    )
    expected = model(profile, "peak")
    assert {(row[0], row[1]): tuple(row[2:]) for row in at_peak} == expected
    assert total[0][2:] == [sum(column) for column in zip(*expected.values())]
    assert {(row[0], row[1]): tuple(row[2:]) for row in last} == model(profile, "3")


def test_the_columns_of_a_library_are_all_of_the_host_s_kinds(tmp_path: Path) -> None:
    trace = mapping_run()
    kinds = ("pinned", "driver-host")
    accounts = {kind: trace.account(kind, "app", ["take (libapp.so)"]) for kind in kinds}
    trace.snapshot(40, "exit", {account: (n << 20, 1) for n, account in enumerate(accounts.values(), 1)})
    page = write_page(tmp_path, trace.save(tmp_path))
    heads, rows = look(
        page,
        ["choose", "#owners .choice select", "library"],
        ["pick", "#timeline .u-over", 0.999],
        ["rows", "#owners thead"],
        ["rows", "#owners tbody"],
    )[2:]
    (row,) = [row for row in rows if row[0] == "libapp.so"]
    assert row[[head.split()[0] for head in heads[0]].index("other")] == 3 << 20


def test_without_pages_there_is_no_such_table(tmp_path: Path) -> None:
    page = write_page(tmp_path, small_training_run().save(tmp_path))
    assert look(page, ["count", "#mapped"]) == [0]
