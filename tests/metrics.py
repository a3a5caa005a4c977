"""What a server's metrics endpoint says."""

from __future__ import annotations

import urllib.error
import urllib.request

from launcher import EmbeddedServer


def serves_metrics(server: EmbeddedServer) -> bool:
    """Whether the endpoint is there: Triton opens it last, after the models answer."""
    try:
        read_metrics(server)
    except urllib.error.URLError:
        return False
    return True


def read_metrics(server: EmbeddedServer) -> dict[str, float]:
    """Return the value of each metric, by its name with labels as the endpoint writes it."""
    with urllib.request.urlopen(server.metrics_url, timeout=10) as response:
        lines = response.read().decode().splitlines()
    pairs = [line.rsplit(" ", 1) for line in lines if line and not line.startswith("#")]
    return {name: float(value) for name, value in pairs}


def read_total(server: EmbeddedServer, family: str) -> float:
    """Return the sum of a family's metrics; 0 where it has none yet."""
    return sum(v for name, v in read_metrics(server).items() if name.startswith(family + "{"))
