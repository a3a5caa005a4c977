"""The dashboard's panels and their expressions, as Grafana would ask them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .prometheus import MONITORING

FILE = MONITORING / "grafana" / "dashboards" / "chattts.json"
GPU_ONLY = ("nv_gpu_", "chattts_gpu_")
"""How metrics begin that a server without a GPU does not have."""

_ANY = ".+"


@dataclass(frozen=True)
class Query:
    """One expression of a panel, with all servers and versions chosen."""

    expr: str
    legend: str
    """Name of its lines, with labels as `{{label}}`."""

    @property
    def needs_gpu(self) -> bool:
        """Whether only a server with a GPU has data."""
        return any(name in self.expr for name in GPU_ONLY)


@dataclass(frozen=True)
class Panel:
    """What a panel shows."""

    row: str
    title: str
    unit: str
    kind: str
    """timeseries or table."""
    limit: float | None
    """Where the red line is."""
    queries: tuple[Query, ...]


def read_panels(rate_range: str) -> list[Panel]:
    """Return all panels in the dashboard's order.

    Args:
        rate_range: for $__rate_interval, such as 1m.
    """
    return list(_panels(json.loads(FILE.read_text(encoding="utf-8")), rate_range))


def _panels(dashboard: dict[str, Any], rate_range: str) -> Iterator[Panel]:
    variables = [f'"${variable["name"]}"' for variable in dashboard["templating"]["list"]]
    row = ""
    for panel in dashboard["panels"]:
        if panel["type"] == "row":
            row = panel["title"]
            continue
        queries = []
        for target in panel["targets"]:
            expr = target["expr"].replace("$__rate_interval", rate_range)
            for variable in variables:
                expr = expr.replace(variable, f'"{_ANY}"')
            queries.append(Query(expr, target["legendFormat"]))
        defaults = panel["fieldConfig"]["defaults"]
        yield Panel(
            row=row,
            title=panel["title"],
            unit=defaults["unit"],
            kind=panel["type"],
            limit=defaults["thresholds"]["steps"][-1]["value"],
            queries=tuple(queries),
        )
