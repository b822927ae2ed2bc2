# SPDX-License-Identifier: GPL-2.0-or-later
"""Memory over time by owner group as a picture, through matplotlib where it is installed: PNG, SVG or PDF by the file's ending."""

import io
import os
from importlib import import_module
from typing import Any, Dict, Iterator, List, Tuple

from jmassif.analysis.aggregate import aggregate, series
from jmassif.model.records import GROUPS, OTHER
from jmassif.model.run import Profile
from jmassif.model.run_info import used_sides
from jmassif.render.view import FormatError, View
from jmassif.units import printable

_COLOURS = {
    "yours": "#2a6fdb",
    "cached": "#c48600",
    "libraries": "#009e73",
    "runtime": "#c23b22",
    OTHER: "#5b636d",
}
_LABELS = {"yours": "your code", "cached": "allocator cache"}
_TIMES = {"ms": (1000, "seconds"), "i": (10**6, "million instructions"), "B": (1 << 20, "MiB allocated and freed")}
# By ending: metadata without which the same trace gives the same file.
_UNDATED: Dict[str, Dict[str, Any]] = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
_MIB = 1 << 20
_MAX_TITLE = 100


def areas(run: Profile, space: str) -> Tuple[List[int], Dict[str, List[int]]]:
    """Times of snapshots and peaks, and bytes by group at each; on "host" or "device", or on both with ""."""

    def group(account: int) -> str:
        return run.group_of.get(run.accounts[account].owner, OTHER)

    moments = [(snapshot.time, 1, usages) for snapshot, usages in series(run, group)]
    moments += [(peak.time, 0, aggregate(run, run.peak_composition(which), group)) for which, peak in run.peaks.items()]
    moments.sort(key=lambda row: row[:2])
    names = [name for name in (*GROUPS, OTHER) if any(name in usages for _, _, usages in moments)]
    columns = {name: [usages[name].on(space) if name in usages else 0 for _, _, usages in moments] for name in names}
    return [time for time, _, _ in moments], columns


def _draw(run: Profile, figure: Any) -> None:
    spaces = used_sides(run) if run.is_discrete else [""]
    scale, unit = _TIMES[run.time_unit]
    axes = figure.subplots(len(spaces), 1, sharex=True, squeeze=False)[:, 0]
    for space, axis in zip(spaces, axes):
        times, columns = areas(run, space)
        shown = {name: column for name, column in columns.items() if any(column)}
        layers = axis.stackplot(
            [time / scale for time in times],
            [[n_bytes / _MIB for n_bytes in column] for column in shown.values()],
            labels=[_LABELS.get(name, name) for name in shown],
            colors=[_COLOURS[name] for name in shown],
        )
        for name, layer in zip(shown, layers):
            if name == "cached":
                layer.set_hatch("///")
        axis.set_ylabel(f"{space} memory, MiB".strip())
        axis.margins(x=0)
        axis.legend(*(part[::-1] for part in axis.get_legend_handles_labels()), loc="upper left")
    axes[-1].set_xlabel(unit)
    # A dollar begins a formula.
    axes[0].set_title(printable(run.manifest.get("command", ""))[:_MAX_TITLE].replace("$", r"\$"))


def write(run: Profile, view: View) -> Iterator[bytes]:
    """The picture. Raises FormatError."""
    ending = os.path.splitext(view.output)[1][1:].lower() or "png"
    if ending not in _UNDATED:
        raise FormatError(f"{view.output}: a plot is a .png, .svg or .pdf")
    try:
        matplotlib = import_module("matplotlib")
        figure = import_module("matplotlib.figure").Figure(figsize=(10, 5))
        import_module("matplotlib.backends.backend_agg").FigureCanvasAgg(figure)
    except ImportError:
        raise FormatError("--format=plot needs matplotlib (Debian: python3-matplotlib)")
    picture = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "jmassif"}):
        _draw(run, figure)
        figure.savefig(picture, format=ending, bbox_inches="tight", metadata=_UNDATED[ending])
    yield picture.getvalue()
