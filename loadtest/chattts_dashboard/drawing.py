"""Draw the dashboard's panels from what Prometheus answered."""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

from .dashboard import Panel
from .prometheus import Series

_COLUMNS = 6
_PANEL_INCHES = (2.8, 1.9)
_DPI = 90
_COLORS = 64
_MAX_NAMES = 5
_SCALES = {"percentunit": (100.0, "%"), "bytes": (1e-9, "GB"), "s": (1.0, "s")}
"""Factor and name of Grafana's units; others have none."""


def draw(
    title: str,
    panels: Sequence[Panel],
    data: Mapping[str, list[Series]],
    start_s: float,
    path: Path,
) -> None:
    """Write one picture with the panels that have data.

    Args:
        title: of the whole.
        panels: in order.
        data: the answer to each expression.
        start_s: time of the epoch that becomes 0 on the axes.
        path: a PNG file.
    """
    shown = [panel for panel in panels if any(data[query.expr] for query in panel.queries)]
    rows = [list(group) for _, group in itertools.groupby(shown, lambda panel: panel.row)]
    lines = [row[i : i + _COLUMNS] for row in rows for i in range(0, len(row), _COLUMNS)]
    width, height = _PANEL_INCHES
    figure = Figure(figsize=(_COLUMNS * width, len(lines) * height), layout="constrained")
    figure.suptitle(title, fontsize=9)
    grid = figure.subplots(len(lines), _COLUMNS, squeeze=False)
    row = ""
    for axes, line in zip(grid, lines, strict=True):
        for place in axes[len(line) :]:
            place.set_axis_off()
        for place, panel in zip(axes, line, strict=False):
            is_first = panel.row != row
            row = panel.row
            name = f"{row.upper()} | {panel.title}" if is_first else panel.title
            place.set_title(name, loc="left", fontsize=7, fontweight="bold")
            show = _table if panel.kind == "table" else _lines
            show(place, panel, data, start_s)
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=_DPI)
    Image.open(drawn).convert("RGB").quantize(_COLORS).save(path, optimize=True)


def _lines(axes: Axes, panel: Panel, data: Mapping[str, list[Series]], start_s: float) -> None:
    factor, unit = _SCALES.get(panel.unit, (1.0, ""))
    number = 0
    for query in panel.queries:
        for series in data[query.expr]:
            times = [when - start_s for when, _ in series.points]
            values = [factor * value for _, value in series.points]
            name = _name(query.legend, series.labels) if number < _MAX_NAMES else None
            axes.plot(times, values, linewidth=1, label=name)
            number += 1
    axes.set_ylim(bottom=0, top=1.05 * axes.get_ylim()[1])
    if panel.limit is not None and axes.get_ylim()[1] > 0.4 * factor * panel.limit:
        axes.axhline(factor * panel.limit, color="tab:red", linewidth=1, linestyle="--")
    axes.set_ylabel(unit, fontsize=6)
    axes.tick_params(labelsize=6)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=5, loc="upper left", framealpha=0.6)


def _table(axes: Axes, panel: Panel, data: Mapping[str, list[Series]], start_s: float) -> None:
    lines = [
        f"{name}: {value}"
        for query in panel.queries
        for series in data[query.expr]
        for name, value in series.labels.items()
    ]
    axes.text(0.02, 0.95, "\n".join(lines), fontsize=6, va="top", transform=axes.transAxes)
    axes.set_xticks([])
    axes.set_yticks([])


def _name(legend: str, labels: Mapping[str, str]) -> str:
    """Fill a legend's `{{label}}` in."""
    return re.sub(r"\{\{(\w+)\}\}", lambda match: labels.get(match[1], ""), legend)
