"""Plots of a report: throughput and latency over concurrency."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator, ScalarFormatter

_MARKERS = {"engine": "o", "server": "s", "llama": "x", "published": "+"}
_COLOURS = ("tab:blue", "tab:orange", "tab:green", "tab:red", "tab:purple", "tab:brown")


def draw(report: Mapping[str, Any], folder: Path) -> list[Path]:
    """Write throughput.png and latency.png into a folder; return their paths."""
    throughput, latency = folder / "throughput.png", folder / "latency.png"
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    _lines(axes, report, "tokens_per_s", "-")
    _lines(axes, report, "floor_tokens_per_s", ":", suffix=" floor", kinds=("engine",))
    _finish(axes, report, "Throughput (dotted: what memory and arithmetic allow)", "tokens/s")
    figure.savefig(throughput, dpi=120)

    figure = Figure(figsize=(11, 5), layout="constrained")
    steps, first_audio = figure.subplots(1, 2)
    for axes, key in ((steps, "step_ms"), (first_audio, "first_audio_ms")):
        _lines(axes, report, f"{key}_p50", "-")
        _lines(axes, report, f"{key}_p99", "--", suffix=" p99")
    _finish(steps, report, "One step", "ms")
    _finish(first_audio, report, "Time to first audio through the server", "ms")
    figure.savefig(latency, dpi=120)
    return [throughput, latency]


def _lines(
    axes: Axes,
    report: Mapping[str, Any],
    key: str,
    style: str,
    suffix: str = "",
    kinds: Sequence[str] = tuple(_MARKERS),
) -> None:
    """Draw one line per kind and variant that has the figure; a pair keeps its colour."""
    pairs = sorted({(case["kind"], case["variant"]) for case in report["cases"]})
    for number, (kind, variant) in enumerate(pairs):
        points = sorted(
            (case["concurrency"], case[key])
            for case in report["cases"]
            if (case["kind"], case["variant"]) == (kind, variant) and key in case
        )
        if points and kind in kinds:
            axes.plot(
                *zip(*points, strict=True),
                linestyle=style,
                marker=_MARKERS[kind],
                color=_COLOURS[number % len(_COLOURS)],
                label=f"{kind} {variant}{suffix}",
            )


def _finish(axes: Axes, report: Mapping[str, Any], title: str, unit: str) -> None:
    axes.set_title(title)
    axes.set_xlabel("requests at once")
    axes.set_ylabel(unit)
    axes.set_xscale("log", base=2)
    axes.set_xticks(sorted({case["concurrency"] for case in report["cases"]}))
    axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_yscale("log")
    axes.grid(visible=True, which="both", alpha=0.3)
    if axes.lines:
        axes.legend(fontsize="small")
