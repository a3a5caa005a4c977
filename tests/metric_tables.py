"""The tables of docs/metrics.md, as the code that registers the metrics has them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol

from chattts_engine.metrics import GPU_GAUGES
from chattts_engine.metrics import SPECS as ENGINE_SPECS
from chattts_pipeline.metrics import SPECS as FRONT_SPECS
from conftest import ROOT

DOCUMENT = ROOT / "docs" / "metrics.md"
ONLY_ON_A_GPU = {spec.name for spec in GPU_GAUGES.values()}
_UNITS = {"_seconds": "seconds", "_bytes": "bytes", "_ratio": "0 … 1", "_factor": "ratio"}


class Spec(Protocol):
    """One family, of either model."""

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def labels(self) -> tuple[str, ...]: ...
    @property
    def buckets(self) -> tuple[float, ...]: ...


def _unit(name: str) -> str:
    found = [unit for end, unit in _UNITS.items() if name.removesuffix("_total").endswith(end)]
    return found[0] if found else "count"


def _row(spec: Spec) -> str:
    labels = ", ".join(f"`{label}`" for label in ("version", *spec.labels))
    buckets = f"; {spec.buckets[0]:g} … {spec.buckets[-1]:g}" if spec.buckets else ""
    kind = spec.kind + (f" ({len(spec.buckets)} buckets{buckets})" if spec.buckets else "")
    return f"| `{spec.name}` | {kind} | {labels} | {_unit(spec.name)} | {spec.description} |"


def _table(specs: Iterable[Spec]) -> str:
    head = ["| metric | kind | labels | unit | meaning |", "|---|---|---|---|---|"]
    return "\n".join([*head, *(_row(spec) for spec in specs)])


def tables() -> Mapping[str, str]:
    """Return the tables by the name of their marker in the document."""
    return {"front-metrics": _table(FRONT_SPECS), "engine-metrics": _table(_Engine.all())}


class _Engine:
    """An engine's family, whose labels begin with the version already."""

    def __init__(self, spec: Spec) -> None:
        self.name, self.kind, self.description = spec.name, spec.kind, spec.description
        self.buckets, self.labels = spec.buckets, spec.labels[1:]
        assert spec.labels[0] == "version"

    @classmethod
    def all(cls) -> list[_Engine]:
        return [cls(spec) for spec in ENGINE_SPECS]


def names() -> set[str]:
    """Return the families of both models."""
    return {spec.name for spec in (*FRONT_SPECS, *ENGINE_SPECS)}


def documented(document: Path = DOCUMENT) -> dict[str, str]:
    """Return what stands between the markers."""
    text = document.read_text(encoding="utf-8")
    found = {}
    for name in tables():
        start, end = f"<!-- {name} -->\n", f"\n<!-- /{name} -->"
        assert text.count(start) == text.count(end) == 1, name
        found[name] = text.split(start)[1].split(end)[0]
    return found
