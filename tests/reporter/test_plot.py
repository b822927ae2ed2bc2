# SPDX-License-Identifier: GPL-2.0-or-later
"""--format=plot: the areas by owner group, against the totals of snapshots and peaks; and a picture where matplotlib is installed."""

import sys
from pathlib import Path
from typing import Any, List, Union

import pytest

from jmassif.export.plot import areas
from jmassif.model.records import Peak, Snapshot
from tests.reporter.commands import jm_print
from tests.reporter.traces import small_training_run

BEGINS = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


@pytest.mark.parametrize("space", ["", "host", "device"])
def test_areas_add_up_to_the_totals_of_snapshots_and_peaks(space: str) -> None:
    run = small_training_run().load()
    times, groups = areas(run, space)
    moments: List[Union[Snapshot, Peak]] = [*run.snapshots, *run.peaks.values()]
    expected = [
        (
            moment.time,
            sum(bytes_ for side, bytes_ in (("host", moment.host), ("device", moment.device)) if space in ("", side)),
        )
        for moment in moments
    ]
    assert sorted(zip(times, map(sum, zip(*groups.values())))) == sorted(expected)
    assert times == sorted(times)


@pytest.mark.parametrize("ending", sorted(BEGINS))
def test_a_picture_is_of_the_format_of_its_ending(tmp_path: Path, ending: str) -> None:
    pytest.importorskip("matplotlib")
    path = small_training_run().save(tmp_path)
    file = tmp_path / f"memory.{ending}"
    assert jm_print("--format=plot", "-o", file, path) == (0, "", "")
    assert file.read_bytes().startswith(BEGINS[ending])


def test_an_unknown_ending_is_one_line(tmp_path: Path) -> None:
    done = jm_print("--format=plot", "-o", tmp_path / "memory.gif", small_training_run().save(tmp_path))
    assert done.status == 2 and done.err.count("\n") == 1 and ".png, .svg or .pdf" in done.err
    assert not (tmp_path / "memory.gif").exists()


def test_without_matplotlib_it_is_refused_in_one_line(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = jm_print("--format=plot", "-o", tmp_path / "memory.png", small_training_run().save(tmp_path))
    assert done.status == 2 and done.err.count("\n") == 1 and "matplotlib" in done.err
