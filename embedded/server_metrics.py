"""How many requests are being spoken, from the text of a server's metrics."""

from __future__ import annotations

RUNNING_METRIC = "chattts_running_requests"
"""Gauge of the front model, one per version. Server 2.51 refuses BLS calls from SIGTERM on, so its
running requests have to end before."""


def num_running(metrics: str) -> float:
    """Return the sum over all versions, 0 where there is no such model."""
    lines = metrics.splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(RUNNING_METRIC))
