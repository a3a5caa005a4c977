"""Plots of a load test, as PNG bytes: figures over concurrency, or over time."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator, ScalarFormatter

from .figures import Figures

_MEGABYTE = 1e6


def over_concurrency(steps: Sequence[Figures]) -> bytes:
    """Throughput, latency, first audio, real-time factor and memory over requests at once."""
    return _draw(steps, [float(step.concurrency) for step in steps], "requests at once", True)


def over_time(stretches: Sequence[tuple[float, Figures]]) -> bytes:
    """The same over the seconds of a shape, with the requests at once."""
    middles_s = [middle_s for middle_s, _ in stretches]
    return _draw([one for _, one in stretches], middles_s, "seconds", False)


def _draw(steps: Sequence[Figures], x: Sequence[float], label: str, over_counts: bool) -> bytes:
    figure = Figure(figsize=(12, 7), layout="constrained")
    panels = figure.subplots(2, 3).ravel()
    _lines(panels[0], x, "Throughput", "requests/s", {"": [one.qps for one in steps]})
    _lines(
        panels[1],
        x,
        "Latency",
        "s",
        {
            "p50": [one.latency_p50_s for one in steps],
            "p95": [one.latency_p95_s for one in steps],
            "p99": [one.latency_p99_s for one in steps],
        },
    )
    _lines(
        panels[2],
        x,
        "First audio",
        "s",
        {
            "p50": [one.first_audio_p50_s for one in steps],
            "p95": [one.first_audio_p95_s for one in steps],
        },
    )
    _lines(panels[3], x, "Audio", "s of audio per s", {"": [one.audio_s_per_s for one in steps]})
    factors = {
        "p50": [one.real_time_factor_p50 for one in steps],
        "p95": [one.real_time_factor_p95 for one in steps],
    }
    _lines(panels[4], x, "Real-time factor", "", factors)
    panels[4].axhline(1.0, color="tab:red", linewidth=1)
    if over_counts:
        is_known = all(one.memory_bytes for one in steps)
        title = "Memory" if is_known else "Memory: not known"
        memory = [one.memory_bytes / _MEGABYTE if is_known else math.nan for one in steps]
        _lines(panels[5], x, title, "MB", {"": memory})
    else:
        running = [float(one.concurrency) for one in steps]
        _lines(panels[5], x, "Requests at once", "", {"": running})
    for axes in panels:
        axes.set_xlabel(label)
        axes.set_ylim(bottom=0)
        if over_counts:
            axes.set_xscale("log", base=2)
            axes.set_xticks(x)
            axes.xaxis.set_major_formatter(ScalarFormatter())
            axes.xaxis.set_minor_locator(NullLocator())
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=90)
    return buffer.getvalue()


def _lines(
    axes: Axes, x: Sequence[float], title: str, unit: str, series: dict[str, list[float]]
) -> None:
    for name, values in series.items():
        axes.plot(x, values, marker="o", label=name)
    axes.set_title(title)
    axes.set_ylabel(unit)
    axes.grid(visible=True, alpha=0.3)
    if len(series) > 1:
        axes.legend(fontsize="small")
