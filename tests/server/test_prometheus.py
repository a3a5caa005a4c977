"""A real Prometheus scrapes a server under load: every expression gives data."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest
import yaml
from chattts_dashboard.dashboard import Query, read_panels
from chattts_dashboard.prometheus import MONITORING, PROGRAM, Prometheus
from chattts_dashboard.traffic import Traffic
from launcher import EmbeddedServer

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no prometheus (Debian's package)")

TEXTS = ("hello world", "the cat reads a book", "one two three")
LIMIT_S = 40.0
QUERIES = {
    f"{panel.title}: {query.legend}": query
    for panel in read_panels(rate_range="1m")
    for query in panel.queries
    if not query.needs_gpu
}


@pytest.fixture(scope="module")
def prometheus(tiny_server: EmbeddedServer) -> Iterator[Prometheus]:
    target = tiny_server.metrics_url.split("/")[2]
    with (
        Prometheus(target) as running,
        Traffic(tiny_server.grpc_url, tiny_server.http_url, TEXTS, num_callers=4),
    ):
        yield running


def has_data(prometheus: Prometheus, query: Query) -> bool:
    """Whether there is a value in which every label of the legend is filled in."""
    wanted = set(re.findall(r"\{\{(\w+)\}\}", query.legend))
    return any(one.points and wanted <= one.labels.keys() for one in prometheus.query(query.expr))


def test_every_query_of_the_dashboard_gives_data(prometheus: Prometheus) -> None:
    missing = dict(QUERIES)
    deadline = time.monotonic() + LIMIT_S
    while missing and time.monotonic() < deadline:
        time.sleep(1)
        missing = {
            name: query for name, query in missing.items() if not has_data(prometheus, query)
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


def test_no_alert_fires_without_a_cause(prometheus: Prometheus) -> None:
    (up,) = prometheus.query('up{job="chattts"}')
    assert up.points[-1][1] == 1
    assert not prometheus.query('ALERTS{alertstate="firing"}')
