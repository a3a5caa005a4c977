"""The report of a run: everything as JSON, and a short table for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timezone
from typing import Any

from chattts_bench.built import Built
from chattts_bench.report import table

from .outcomes import Outcome, Tally
from .run import Options, Record
from .verdict import growth_under_load
from .watch import Snapshot

_MEGABYTE = 1e6


def as_json(options: Options, record: Record) -> dict[str, Any]:
    """Return the report, ready for JSON."""
    built = Built(options.repository)
    return {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "checkpoint": built.gpt["checkpoint"],
        "precision": built.precision,
        "seconds": options.seconds,
        "seed": options.seed,
        "is_partial": record.is_partial,
        "faults": record.faults,
        "warm_up": _tally(record.warm),
        "soak": _tally(record.soaked),
        "growth": [
            {**asdict(growth), "ratio": growth.ratio}
            for growth in growth_under_load(record.under_load, record.soaked)
        ],
        "at_rest": [_snapshot(one) for one in record.at_rest],
        "under_load": [_snapshot(one) for one in record.under_load],
        "log_tail": record.log_tail,
    }


def _tally(tally: Tally) -> dict[str, Any]:
    return {
        "by_kind": tally.by_kind(),
        "by_outcome": {key.value: count for key, count in tally.by_outcome().items()},
        "unexplained": [asdict(one) for one in tally.unexplained],
    }


def _snapshot(snapshot: Snapshot) -> dict[str, Any]:
    return asdict(snapshot)


def render(report: Mapping[str, Any]) -> str:
    """Return the tables and the verdict as text."""
    headings = ["", *(outcome.value for outcome in Outcome)]
    counted = {**report["soak"]["by_kind"], "all": report["soak"]["by_outcome"]}
    rows = [
        [kind, *(str(ended.get(outcome.value, "")) for outcome in Outcome)]
        for kind, ended in counted.items()
    ]
    parts = [
        f"{report['date']}  checkpoint {report['checkpoint']} ({report['precision']}), "
        f"{report['seconds']:g} s, seed {report['seed']}",
        table(headings, rows),
    ]
    if report["growth"]:
        headings = ["under load", "first quarter", "last quarter", "2.51 loses", "growth"]
        parts.append(table(headings, [_growth_row(one) for one in report["growth"]]))
    if len(report["at_rest"]) == 2:
        headings = ["at rest", "after warm-up", "at the end"]
        parts.append(table(headings, _rest_rows(report["at_rest"])))
    parts.append(_verdict(report))
    return "\n\n".join(parts)


def _growth_row(growth: Mapping[str, Any]) -> list[str]:
    first, last, lost = (f"{growth[key] / _MEGABYTE:.1f} MB" for key in ("first", "last", "lost"))
    return [growth["name"], first, last, lost if growth["lost"] else "", f"{growth['ratio']:.3f}"]


def _rest_rows(snapshots: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    def row(name: str, field: str, unit: float, form: str) -> list[str]:
        sums = [sum(part[field] for part in one["parts"].values()) for one in snapshots]
        return [name, *(form.format(one / unit) for one in sums)]

    shared = [f"{one['shared_memory'] / _MEGABYTE:.1f} MB" for one in snapshots]
    return [
        row("heaps and stacks", "anonymous", _MEGABYTE, "{:.1f} MB"),
        ["shared memory", *shared],
        row("RSS", "rss", _MEGABYTE, "{:.1f} MB"),
        row("PSS", "pss", _MEGABYTE, "{:.1f} MB"),
        row("processes", "num_processes", 1.0, "{:.0f}"),
        row("threads", "num_threads", 1.0, "{:.0f}"),
        row("open files", "num_fds", 1.0, "{:.0f}"),
    ]


def _verdict(report: Mapping[str, Any]) -> str:
    whole = "interrupted; " * report["is_partial"]
    if not report["faults"]:
        return f"{whole}nothing is wrong"
    lines = [f"{whole}WRONG:", *(f"- {fault}" for fault in report["faults"])]
    if report["log_tail"]:
        lines += ["the end of the server's log:", report["log_tail"]]
    return "\n".join(lines)
