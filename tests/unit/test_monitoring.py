"""Rules, dashboard and metrics agree: everything parses, every alert is tested and explained."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import chattts_engine.metrics
import chattts_pipeline.metrics
import make_dashboard
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
MONITORING = ROOT / "monitoring"
RUN_BOOK = ROOT / "docs" / "operations.md"
RULES = sorted((MONITORING / "rules").glob("*.yml"))
TESTS = sorted((MONITORING / "rules_tests").glob("*.yml"))
PROVISIONING = MONITORING / "grafana" / "provisioning"

PROMTOOL = shutil.which("promtool")
AMTOOL = shutil.which("amtool")
needs_amtool = pytest.mark.skipif(
    AMTOOL is None, reason="no amtool (Debian: prometheus-alertmanager)"
)
needs_promtool = pytest.mark.skipif(PROMTOOL is None, reason="no promtool (Debian: prometheus)")


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def rules(kind: str) -> dict[str, dict[str, Any]]:
    """All rules that are a `kind` (alert or record), by name."""
    groups = [group for path in RULES for group in load(path)["groups"]]
    found = [rule for group in groups for rule in group["rules"] if kind in rule]
    names = [rule[kind] for rule in found]
    assert len(names) == len(set(names))
    return dict(zip(names, found, strict=True))


ALERTS, RECORDS = rules("alert"), rules("record")
PANELS = [panel for panel in make_dashboard.dashboard()["panels"] if panel["type"] != "row"]
PLOTTED = [target["expr"] for panel in PANELS for target in panel["targets"]]
RULED = [rule["expr"] for rule in (*ALERTS.values(), *RECORDS.values())]


def promtool(*arguments: str | Path) -> None:
    done = subprocess.run([str(PROMTOOL), *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def amtool(*arguments: str | Path) -> str:
    command = [str(AMTOOL), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def names_in(expr: str) -> set[str]:
    """The metrics and recorded series of an expression; a histogram's without its suffix."""
    bare = re.sub(r'"[^"]*"', "", expr)
    bare = re.sub(r"\b(?:by|on) \([^)]*\)", "", bare)
    found = re.findall(r"\b(?:[a-z_]+:[\w:]+|(?:chattts|tts|nv)_\w+)\b", bare)
    return {re.sub(r"_(?:bucket|sum)$", "", name) for name in found}


@needs_promtool
def test_configuration_and_rules_are_valid() -> None:
    promtool("check", "config", MONITORING / "prometheus.yml")
    promtool("check", "rules", *RULES)


@needs_amtool
def test_alertmanager_s_configuration_is_valid_and_tells_nobody_yet() -> None:
    config = MONITORING / "alertmanager.yml"
    amtool("check-config", config)
    for severity in ("page", "ticket"):
        test = ("config", "routes", "test", f"--config.file={config}")
        assert amtool(*test, "alertname=Rejections", f"severity={severity}").split() == ["nobody"]


@needs_promtool
def test_every_expression_of_the_dashboard_parses(tmp_path: Path) -> None:
    expressions = [expr.replace("$__rate_interval", "1m") for expr in PLOTTED]
    listed = [{"record": f"panel:{i}", "expr": expr} for i, expr in enumerate(expressions)]
    path = tmp_path / "panels.yml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": listed}]}))
    promtool("check", "rules", path)


@needs_promtool
def test_alerts_fire_and_keep_quiet_as_their_tests_say() -> None:
    promtool("test", "rules", *TESTS)


@pytest.mark.parametrize("alert", ALERTS)
def test_alert_is_tested_both_firing_and_quiet(alert: str) -> None:
    cases = [
        case for path in TESTS for test in load(path)["tests"] for case in test["alert_rule_test"]
    ]
    expected = [bool(case["exp_alerts"]) for case in cases if case["alertname"] == alert]
    assert set(expected) == {True, False}


@pytest.mark.parametrize("alert", ALERTS)
def test_alert_has_its_section_in_the_run_book(alert: str) -> None:
    rule = ALERTS[alert]
    assert rule["labels"]["severity"] in ("page", "ticket")
    assert rule["annotations"]["runbook"] == f"docs/operations.md#{alert.lower()}"
    sections = RUN_BOOK.read_text(encoding="utf-8").split("\n### ")
    (section,) = [text for text in sections if text.splitlines()[0] == alert]
    assert "**Cause.**" in section
    assert "**Action.**" in section


def test_run_book_explains_no_alert_that_is_not_there() -> None:
    part = RUN_BOOK.read_text(encoding="utf-8").split("\n## Alerts\n")[1].split("\n## ")[0]
    assert set(re.findall(r"^### (\w+)$", part, re.MULTILINE)) == ALERTS.keys()


def test_dashboard_file_is_what_the_panels_say() -> None:
    assert make_dashboard.DASHBOARD.read_text(encoding="utf-8") == make_dashboard.text()


def test_panels_lie_side_by_side() -> None:
    every = make_dashboard.dashboard()["panels"]
    assert len({panel["id"] for panel in every}) == len(every)
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in every)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24


def test_rows_are_those_that_an_operator_looks_for() -> None:
    assert [row.title for row in make_dashboard.ROWS] == [
        "Experience", "Traffic", "Errors", "Engine and KV", "Vocoder", "Triton", "Machine",
    ]  # fmt: skip


def test_datasource_is_the_one_that_the_panels_ask() -> None:
    (source,) = load(PROVISIONING / "datasources" / "prometheus.yml")["datasources"]
    assert source["uid"] == make_dashboard.DATASOURCE["uid"]
    assert source["type"] == make_dashboard.DATASOURCE["type"]
    scraped = load(MONITORING / "prometheus.yml")["global"]["scrape_interval"]
    assert source["jsonData"]["timeInterval"] == scraped


def test_recorded_series_are_used_and_those_used_are_recorded() -> None:
    used = {name for expr in PLOTTED + RULED for name in names_in(expr) if ":" in name}
    assert used == RECORDS.keys()


def test_our_metrics_are_shown_and_those_shown_are_ours() -> None:

    ours = {spec.name for spec in (*chattts_engine.metrics.SPECS, *chattts_pipeline.metrics.SPECS)}
    used = {name for expr in PLOTTED + RULED for name in names_in(expr)}
    used = {re.sub(r"_count$", "", name) for name in used if name.startswith(("chattts_", "tts_"))}
    assert used == ours
