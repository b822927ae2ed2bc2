# SPDX-License-Identifier: GPL-2.0-or-later
"""The page of a fleet in Chromium: its figures are those of --format=json, and a bar leads to the runs that are in it."""

import json
import sqlite3
from pathlib import Path
from typing import Any, Dict, List, Mapping, NamedTuple, Tuple

import pytest

for library in ("sqlalchemy", "pandas", "scipy"):
    pytest.importorskip(library)

from jmassif.fleet.database import PART, RUN, SETUP, TRACE, begin, insert, opened
from jmassif.fleet.reduce import number_of
from jmassif.units import growth, size
from tests.reporter.commands import jmassif
from tests.web.browser import look, visit

N = 10000
VIEWS = {"owner": 8, "library": 10, "scope": 12, "python-line": 20}

JETPACKS = ("4.6.1", "5.1.2", "6.0", "6.2")
FIGURES_OF_A_GROUP = ("n", "median", "spread", "low", "high")

# Half a million rows, made by the database itself. Part 3 has grown in the last JetPack, run 42 is an outlier.
FIGURES = """
INSERT INTO figure (run, part, host, device, number)
WITH RECURSIVE
    runs (run) AS (SELECT CAST(0 AS BIGINT) UNION ALL SELECT run + 1 FROM runs WHERE run < {last}),
    parts (part, at) AS (VALUES {places}),
    crossed AS (SELECT run, part, at, run * 7919 * (at + 1) AS product FROM runs CROSS JOIN parts),
    made AS (SELECT run, part, at, product - product / 100003 * 100003 AS noise FROM crossed)
SELECT
    run,
    part,
    (at + 1) * 1000000 + noise
        + CASE WHEN at = 3 AND run - run / 4 * 4 = 3 THEN 3145728 ELSE 0 END
        + CASE WHEN run = 42 AND at = 0 THEN 103809024 ELSE 0 END,
    CASE WHEN at = 30 THEN -noise ELSE at * 1000 END,
    1
FROM made WHERE TRUE ON CONFLICT DO NOTHING
"""


class FleetPage(NamedTuple):
    path: Path
    found: Dict[str, Any]  # the same as JSON
    database: Path


def fill(database: str, recorded: Mapping[int, Tuple[str, str]] = {}, n_runs: int = N) -> None:
    """10,000 runs, made in the tables: how they get there from traces is tested with traces. Some have a trace and its run's id."""
    parts = [("total", "total")] + [(view, f"{view} <{n}>") for view, many in VIEWS.items() for n in range(many)]
    numbers = [number_of("\0".join(part)) for part in parts]
    runs = []
    for run in range(n_runs):
        row: Dict[str, Any] = {name: None for name in RUN.columns.keys()}
        row.update(run=run, id=f"{run:032x}", host=f"board-{run:05}", jetpack=JETPACKS[run % 4], board="Nano")
        row.update(setup=run % 4, is_complete=1, is_discrete=0, start_unix_ms=run, start="2026-09-21T00:00:00Z")
        row.update(zip(("file", "id"), recorded.get(run, (f"/traces/{run}", row["id"]))))
        runs.append(row)
    setups = [{"setup": setup, "key": "package.libssl", "value": f"<b>{setup}</b>"} for setup in range(4)]
    named = [{"part": number, "view": view, "name": name} for number, (view, name) in zip(numbers, parts)]
    files = [{"path": row["file"], "reason": None, "size": 1, "mtime_ns": 1, "run": row["run"]} for row in runs]
    with opened(database, may_be_new=True) as connection:
        begin(connection)
        for table, rows in ((PART, named), (RUN, runs), (SETUP, setups), (TRACE, files)):
            insert(connection, table, rows)
        places = ", ".join(f"({number}, {at})" for at, number in enumerate(numbers))
        connection.exec_driver_sql(FIGURES.format(places=places, last=n_runs - 1))
        connection.commit()


@pytest.fixture(scope="module", name="page")
def fixture_page(tmp_path_factory: Any) -> FleetPage:
    directory = tmp_path_factory.mktemp("fleet")
    database, path = directory / "fleet.db", directory / "fleet.html"
    fill(str(database))
    done = jmassif("fleet", "diff", database, "--group-by=jetpack", "--format=html", "-o", path)
    assert done.status == 0, done.err
    told = jmassif("fleet", "diff", database, "--group-by=jetpack", "--format=json")
    return FleetPage(path, json.loads(told.out), database)


def test_every_figure_is_that_of_the_json(page: FleetPage) -> None:
    views = ["total", *VIEWS]
    steps = [["evaluate", "document.querySelectorAll('.more').forEach((more) => more.hidden || more.click())"]]
    shown = look(page.path, *steps, *(["rows", f"#by-{view} tbody"] for view in views))[1:]
    for view, rows in zip(views, shown):
        expected = []
        for row in (row for row in page.found["rows"] if row["view"] == view):
            label = page.found["groups"][row["group"]]["label"]
            cells: List[Any] = [row["name"], label, *(row[name] for name in FIGURES_OF_A_GROUP)]
            if row["group"] != page.found["base"]:
                cells += [row["bytes"], " to ".join(map(growth, row["interval"])), "yes" if row["is_change"] else ""]
            expected.append(cells + [""] * (10 - len(cells)))
        assert rows == expected and len(rows) >= 1


def test_a_bar_leads_to_its_runs_and_bars_have_all_of_them(page: FleetPage) -> None:
    names = [row["name"] for row in page.found["rows"] if row["view"] == "owner"]
    assert names[0] == "owner <2>"  # that has grown most
    title, counts, _, label, note, rows = look(
        page.path,
        ["text", "#distribution h2"],
        ["attributes", ".distribution:nth-child(4) .bin[data-value]", "data-value"],
        ["click", "#by-owner tbody tr:nth-child(4)"],
        ["attributes", ".distribution:nth-child(4) button.bin", "aria-label"],
        ["click", ".distribution:nth-child(4) button.bin"],
        ["rows", "#distribution tbody"],
    )[:6]
    assert title == "Total" and sum(map(int, counts)) == N // 4
    connection = sqlite3.connect(str(page.database))
    held = connection.execute(
        "SELECT r.host, f.host + f.device FROM figure f JOIN part USING (part) JOIN run r USING (run)"
        " WHERE name = 'owner <2>' AND jetpack = '6.2' ORDER BY 2"
    ).fetchall()
    connection.close()
    n = int(label[0].split()[0].replace(",", ""))
    lowest = sorted(held[:n], key=lambda of: -int(of[1]))
    assert [row[:2] for row in rows] == [list(of) for of in lowest[: len(rows)]] and len(rows) == min(n, 25)


def test_the_headline_is_there_without_a_script_and_names_are_no_markup(page: FleetPage) -> None:
    text, bold, facts, far = look(
        page.path,
        ["texts", "#headline .statement"],
        ["count", "td b, th b"],
        ["rows", "#facts tbody"],
        ["rows", "#outliers tbody"],
    )
    assert text == page.found["headline"] and bold == 0
    assert facts == [["package libssl", *(f"<b>{setup}</b>" for setup in range(4))]]
    assert [row[0] for row in far] == ["board-00042"] == [each["host"] for each in page.found["outliers"]]
    assert size(page.found["outliers"][0]["bytes"])


WIDER = "[...document.querySelectorAll('{}')].map((e) => e.scrollWidth - e.clientWidth)"
# Scrolls the tables to their ends: how far a name is from the left edge then, and the last figure from the right.
AT_THE_END = """[...document.querySelectorAll('.scroll')].map((e) => {
    e.scrollLeft = 1e6;
    const [box, cells] = [e.getBoundingClientRect(), e.querySelector('tbody tr').children];
    const [name, last] = [cells[0], cells[cells.length - 1]].map((cell) => cell.getBoundingClientRect());
    return [name.left - box.left, box.right - last.right];
})"""


def test_no_column_is_cut_on_a_screen_and_on_a_phone_names_stay_beside_the_figures(page: FleetPage) -> None:
    (over,) = look(page.path, ["evaluate", WIDER.format(".scroll")], width=1440, height=900)
    assert len(over) == 2 + len(VIEWS) + 1 and max(over) <= 0
    steps = [["evaluate", WIDER.format("html")], ["evaluate", WIDER.format(".scroll")], ["evaluate", AT_THE_END]]
    (whole,), over, found = look(page.path, *steps, width=390, height=844)
    assert whole <= 0 and max(over) > 0
    assert all(abs(left) < 1 and right > -1 for left, right in found)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_fit_for_everybody(page: FleetPage, scheme: str) -> None:
    visited = visit(page.path, ["axe"], scheme=scheme)
    assert visited.results == [[]] and visited.trouble == []


def test_it_opens_in_two_seconds(page: FleetPage) -> None:
    """Where others work on the machine too, in one of several tries."""
    opened: List[int] = []
    while len(opened) < 4 and min(opened, default=2000) >= 2000:
        opened.append(visit(page.path).opened_ms)
    assert min(opened) < 2000, opened
