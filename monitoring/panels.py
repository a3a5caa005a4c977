"""Rows of panels, and the expressions in PromQL that many of them share.

Short forms in the expressions: `<v>` selects the chosen servers and versions, `<i>` the chosen
servers, `[r]` is the range that Grafana picks for rates.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Query:
    """One expression and the name of its lines, with labels as `{{label}}`."""

    expr: str
    legend: str


@dataclass(frozen=True)
class Panel:
    """One diagram, or a table of the labels of what is served."""

    title: str
    unit: str
    """Grafana's name of the unit: s, short, percentunit, bytes, reqps, ..."""
    description: str
    queries: tuple[Query, ...]
    limit: float | None = None
    """Where the red line is."""
    is_table: bool = False


@dataclass(frozen=True)
class Row:
    """Panels under one heading."""

    title: str
    panels: tuple[Panel, ...]


def quantiles(histogram: str, legend: str, selector: str, by: str = "") -> tuple[Query, ...]:
    """Return p50, p95 and p99 of a histogram, for each value of the label `by`."""
    labels = f"{by}, le" if by else "le"
    return tuple(
        Query(
            f"histogram_quantile({quantile}, "
            f"sum by ({labels}) (rate({histogram}_bucket{{{selector}}}[r])))",
            f"p{100 * quantile:.0f}{legend}",
        )
        for quantile in (0.5, 0.95, 0.99)
    )


def mean(total: str, number: str, by: str, selector: str, scale: str = "") -> str:
    """Return the expression of a counter's growth per growth of another one."""
    return (
        f"sum by ({by}) (rate({total}{{{selector}}}[r]))"
        f" / sum by ({by}) (rate({number}{{{selector}}}[r])){scale}"
    )
