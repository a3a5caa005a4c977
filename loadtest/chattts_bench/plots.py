"""Plots of a report: throughput and latency over concurrency."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

_MARKERS = {"engine": "o-", "server": "s--", "llama": "x:", "published": "+:"}


def draw(report: Mapping[str, Any], folder: Path) -> list[Path]:
    """Write throughput.png and latency.png into a folder; return their paths."""
    written = []
    for name, draw_on in (("throughput", _throughput), ("latency", _latency)):
        figure = Figure(figsize=(8, 5), layout="constrained")
        axes = figure.subplots()
        draw_on(axes, report)
        axes.set_xlabel("requests at once")
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.grid(visible=True, which="both", alpha=0.3)
        axes.legend(fontsize="small")
        path = folder / f"{name}.png"
        figure.savefig(path, dpi=120)
        written.append(path)
    return written


def _throughput(axes: Axes, report: Mapping[str, Any]) -> None:
    axes.set_title("Tokens per second")
    axes.set_ylabel("tokens/s")
    _lines(axes, report, "tokens_per_s", lambda kind, variant: f"{kind}, {variant}")
    for variant in sorted({case["variant"] for case in report["cases"]}):
        points = sorted(
            (case["concurrency"], case["floor_tokens_per_s"])
            for case in report["cases"]
            if case["variant"] == variant
            and case["kind"] == "engine"
            and "floor_tokens_per_s" in case
        )
        if points:
            axes.plot(*zip(*points, strict=True), "k:", alpha=0.5, label=f"floor, {variant}")


def _latency(axes: Axes, report: Mapping[str, Any]) -> None:
    axes.set_title("Engine step, and time to first audio through the server")
    axes.set_ylabel("ms")
    for percentile in ("p50", "p99"):
        for key, what in (("step_ms", "step"), ("first_audio_ms", "first audio")):
            _lines(axes, report, f"{key}_{percentile}", _label(what, percentile))


def _label(what: str, percentile: str) -> Callable[[str, str], str]:
    return lambda kind, variant: f"{what} {percentile}, {variant}"


def _lines(
    axes: Axes, report: Mapping[str, Any], key: str, label: Callable[[str, str], str]
) -> None:
    """Draw one line per kind and variant that has the figure."""
    lines: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for case in report["cases"]:
        if key in case:
            line = lines.setdefault((case["kind"], case["variant"]), [])
            line.append((case["concurrency"], case[key]))
    for (kind, variant), points in lines.items():
        marker = _MARKERS[kind]
        axes.plot(*zip(*sorted(points), strict=True), marker, label=label(kind, variant))
