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

_COLUMNS = 3
"""As in Grafana, and as wide as a page shows without making it smaller."""
_PANEL_INCHES = (3.3, 1.65)
_DPI = 90
_COLORS = 64
_MAX_NAMES = 5
_GIGABYTE = 1e9
_SCALES = {"percentunit": (100.0, "%"), "s": (1.0, "s")}
"""Factor and name of Grafana's units but bytes; others have none."""


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
            show = _table if panel.kind == "table" else draw_lines
            show(place, panel, data, start_s)
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=_DPI)
    Image.open(drawn).convert("RGB").quantize(_COLORS).save(path, optimize=True)


def draw_lines(axes: Axes, panel: Panel, data: Mapping[str, list[Series]], start_s: float) -> None:
    """Draw one panel, as `draw` does."""
    lines = [(query, series) for query in panel.queries for series in data[query.expr]]
    most = max((value for _, series in lines for _, value in series.points), default=0.0)
    factor, unit = _scale(panel.unit, most)
    for number, (query, series) in enumerate(lines):
        times = [when - start_s for when, _ in series.points]
        values = [factor * value for _, value in series.points]
        name = _name(query.legend, series.labels) if number < _MAX_NAMES else None
        if number == _MAX_NAMES:
            name = f"and {len(lines) - _MAX_NAMES} more"
        axes.plot(times, values, linewidth=1, label=name)
    top = 1.3 * factor * most or 1.0  # room for the names
    axes.set_ylim(-0.03 * top, top)  # a line at 0 is seen
    if panel.limit is not None and axes.get_ylim()[1] > 0.4 * factor * panel.limit:
        axes.axhline(factor * panel.limit, color="tab:red", linewidth=1, linestyle="--")
    axes.set_ylabel(unit, fontsize=6)
    axes.tick_params(labelsize=6)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=6, loc="best", framealpha=0.6)


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


def _scale(unit: str, most: float) -> tuple[float, str]:
    """Return factor and name of a unit of Grafana's whose largest value is `most`."""
    if unit == "bytes":
        return (1 / _GIGABYTE, "GB") if most >= _GIGABYTE else (1000 / _GIGABYTE, "MB")
    return _SCALES.get(unit, (1.0, ""))


def _name(legend: str, labels: Mapping[str, str]) -> str:
    """Fill a legend's `{{label}}` in."""
    return re.sub(r"\{\{(\w+)\}\}", lambda match: labels.get(match[1], ""), legend)
