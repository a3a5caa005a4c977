"""A real Prometheus scrapes a server under load: every expression gives data."""

from __future__ import annotations

import time
from collections.abc import Iterator

import make_dashboard
import pytest
import yaml
from chattts_dashboard.prometheus import MONITORING, PROGRAM, Prometheus
from chattts_dashboard.traffic import Traffic
from launcher import EmbeddedServer

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no prometheus (Debian's package)")

TEXTS = ("hello world", "the cat reads a book", "one two three")
LIMIT_S = 40.0
GPU_ONLY = ("nv_gpu_", "chattts_gpu_")
QUERIES = {
    f"{panel['title']}: {target['legendFormat']}": target["expr"]
    for panel in make_dashboard.dashboard()["panels"]
    for target in panel.get("targets", ())
    if not any(name in target["expr"] for name in GPU_ONLY)
}


def as_grafana_asks(expr: str) -> str:
    """Fill in what Grafana does, with all servers and versions chosen."""
    for variable in ("$instance", "$version"):
        expr = expr.replace(f'"{variable}"', '".+"')
    return expr.replace("$__rate_interval", "1m")


@pytest.fixture(scope="module")
def prometheus(tiny_server: EmbeddedServer) -> Iterator[Prometheus]:
    target = tiny_server.metrics_url.split("/")[2]
    with (
        Prometheus(target) as running,
        Traffic(tiny_server.grpc_url, tiny_server.http_url, TEXTS, num_callers=4),
    ):
        yield running


def test_every_query_of_the_dashboard_gives_data(prometheus: Prometheus) -> None:
    missing = dict(QUERIES)
    deadline = time.monotonic() + LIMIT_S
    while missing and time.monotonic() < deadline:
        time.sleep(1)
        missing = {
            name: expr
            for name, expr in missing.items()
            if not any(one.points for one in prometheus.query(as_grafana_asks(expr)))
        }
    assert not missing


def test_every_rule_is_evaluated_and_what_is_recorded_gives_data(prometheus: Prometheus) -> None:
    rules = yaml.safe_load((MONITORING / "rules" / "recording.yml").read_text())
    recorded = [rule["record"] for group in rules["groups"] for rule in group["rules"]]
    deadline = time.monotonic() + LIMIT_S
    while recorded and time.monotonic() < deadline:
        recorded = [name for name in recorded if not prometheus.query(name)]
        time.sleep(0.5)
    assert not recorded
    assert not prometheus.rule_errors()


def test_only_what_is_wrong_is_an_alert(prometheus: Prometheus) -> None:
    (up,) = prometheus.query('up{job="chattts"}')
    assert up.points[-1][1] == 1
    assert not prometheus.query('ALERTS{alertstate="firing"}')
