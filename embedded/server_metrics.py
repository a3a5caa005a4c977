"""Read from a server's metrics how many requests are being spoken."""

from __future__ import annotations

import http.client
import urllib.request

RUNNING_METRIC = "chattts_running_requests"
"""Gauge of the front model. Server 2.51 refuses BLS calls from SIGTERM on, so its running requests
have to end before."""

_LIMIT_S = 5.0


def num_running(metrics_url: str) -> float:
    """Return the gauge's value, 0 where there is no such model or no answer."""
    try:
        with urllib.request.urlopen(metrics_url, timeout=_LIMIT_S) as response:
            lines = response.read().decode().splitlines()
    except (OSError, http.client.HTTPException):
        return 0.0
    return sum(float(line.split()[-1]) for line in lines if line.startswith(RUNNING_METRIC))
