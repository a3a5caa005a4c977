"""The report of a load test: CSV for machines, HTML for people, Markdown for the README."""

from __future__ import annotations

import base64
import csv
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from html import escape
from pathlib import Path
from typing import Any

from .figures import ClassFigures, Figures

_MEGABYTE = 1e6
_README = ("concurrency", "QPS", "mean, s", "P99, s", "first audio p50 / p95, s", "memory, MB")
_COLUMNS = {
    "concurrency": "at once",
    "requests": "requests",
    "errors": "errors",
    "qps": "requests/s",
    "audio_s_per_s": "audio s/s",
    "latency_mean_s": "mean s",
    "latency_p50_s": "p50 s",
    "latency_p95_s": "p95 s",
    "latency_p99_s": "p99 s",
    "first_audio_p50_s": "first audio p50 s",
    "first_audio_p95_s": "p95 s",
    "real_time_factor_p50": "real-time factor p50",
    "real_time_factor_p95": "p95",
    "underruns": "streams that ran dry",
}
_CLASS_COLUMNS = {
    "concurrency": "at once",
    "length": "text",
    "requests": "requests",
    "latency_p50_s": "p50 s",
    "latency_p99_s": "p99 s",
    "first_audio_p50_s": "first audio p50 s",
    "first_audio_p95_s": "p95 s",
    "real_time_factor_p50": "real-time factor p50",
}


def markdown(steps: Sequence[Figures]) -> str:
    """The README's table."""
    rows = [
        (
            str(one.concurrency),
            f"{one.qps:.1f}",
            f"{one.latency_mean_s:.2f}",
            f"{one.latency_p99_s:.2f}",
            f"{one.first_audio_p50_s:.2f} / {one.first_audio_p95_s:.2f}",
            f"{one.memory_bytes / _MEGABYTE:.0f}" if one.memory_bytes else "not known",
        )
        for one in steps
    ]
    lines = [_README, ("---",) * len(_README), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def write_csv(steps: Sequence[Figures], path: Path) -> None:
    """Write all figures, one step or stretch per line."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(asdict(steps[0])))
        writer.writeheader()
        writer.writerows(asdict(one) for one in steps)


def html(
    title: str,
    what: Mapping[str, Any],
    steps: Sequence[Figures],
    classes: Sequence[ClassFigures],
    plot: bytes,
    notes: Sequence[str],
) -> str:
    """One page that needs nothing else: what was measured, plots, tables, notes."""
    facts = "".join(f"<li>{escape(str(key))}: {escape(str(what[key]))}</li>" for key in what)
    said = "".join(f"<li>{escape(note)}</li>" for note in notes)
    image = base64.b64encode(plot).decode()
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title><style>
body {{ font-family: sans-serif; margin: 2em; }}
table {{ border-collapse: collapse; margin: 1em 0; }}
th, td {{ border: 1px solid #ccc; padding: .3em .6em; text-align: right; }}
img {{ max-width: 100%; }}
</style></head><body>
<h1>{escape(title)}</h1>
<ul>{facts}</ul>
<img alt="plots" src="data:image/png;base64,{image}">
{_table(_COLUMNS, [asdict(one) for one in steps])}
{_table(_CLASS_COLUMNS, [asdict(one) for one in classes])}
<ul>{said}</ul>
</body></html>
"""


def _table(columns: Mapping[str, str], rows: Sequence[Mapping[str, Any]]) -> str:
    """A table of the keys of `columns` under their titles."""
    head = "".join(f"<th>{escape(title)}</th>" for title in columns.values())
    body = "".join(
        f"<tr>{''.join(f'<td>{_shown(row[key])}</td>' for key in columns)}</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _shown(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else escape(str(value))
