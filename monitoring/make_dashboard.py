"""Write grafana/dashboards/chattts.json from the panels here; a test holds that they agree.

python monitoring/make_dashboard.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from panels import Panel, Row
from server_panels import ENGINE, MACHINE, TRITON, VOCODER
from speech_panels import ERRORS, EXPERIENCE, TRAFFIC

ROWS = (EXPERIENCE, TRAFFIC, ERRORS, ENGINE, VOCODER, TRITON, MACHINE)

DASHBOARD = Path(__file__).resolve().parent / "grafana" / "dashboards" / "chattts.json"
DATASOURCE = {"type": "prometheus", "uid": "prometheus"}
"""As provisioned in grafana/provisioning/datasources."""

_SHORT_FORMS = {
    "<v>": 'instance=~"$instance",version=~"$version"',
    "<i>": 'instance=~"$instance"',
    "[r]": "[$__rate_interval]",
}
_COLUMNS, _WIDTH, _HEIGHT = 3, 8, 8
"""Panels side by side, and their size in Grafana's units (24 across)."""
_ANY = ".+"


def full_expression(expr: str) -> str:
    """Return an expression of a panel as Grafana reads it."""
    for short, full in _SHORT_FORMS.items():
        expr = expr.replace(short, full)
    return expr


def _variable(label: str) -> dict[str, Any]:
    query = f"label_values(chattts_running_requests, {label})"
    return {
        "type": "query",
        "name": label,
        "datasource": DATASOURCE,
        "query": {"query": query, "refId": label},
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "allValue": _ANY,
        "current": {"text": "All", "value": "$__all"},
    }


def _thresholds(limit: float | None) -> dict[str, Any]:
    steps: list[dict[str, Any]] = [{"color": "green", "value": None}]
    if limit is not None:
        steps.append({"color": "red", "value": limit})
    return {"mode": "absolute", "steps": steps}


def _panel(panel: Panel, number: int, x: int, y: int) -> dict[str, Any]:
    targets = [
        {
            "refId": chr(ord("A") + index),
            "datasource": DATASOURCE,
            "expr": full_expression(query.expr),
            "legendFormat": query.legend,
            **({"instant": True, "format": "table"} if panel.is_table else {"range": True}),
        }
        for index, query in enumerate(panel.queries)
    ]
    hidden = {"Time": True, "Value": True}
    columns = {"id": "organize", "options": {"excludeByName": hidden}}
    custom = {"thresholdsStyle": {"mode": "off" if panel.limit is None else "line"}}
    return {
        "id": number,
        "type": "table" if panel.is_table else "timeseries",
        "title": panel.title,
        "description": panel.description,
        "datasource": DATASOURCE,
        "gridPos": {"x": x, "y": y, "w": _WIDTH, "h": _HEIGHT},
        "fieldConfig": {
            "defaults": {
                "unit": panel.unit,
                **({} if panel.is_table else {"min": 0, "custom": custom}),
                "thresholds": _thresholds(panel.limit),
            },
            "overrides": [],
        },
        "options": {} if panel.is_table else {"tooltip": {"mode": "multi", "sort": "desc"}},
        "transformations": [columns] if panel.is_table else [],
        "targets": targets,
    }


def _row(row: Row, number: int, y: int) -> dict[str, Any]:
    return {
        "id": number,
        "type": "row",
        "title": row.title,
        "collapsed": False,
        "gridPos": {"x": 0, "y": y, "w": _COLUMNS * _WIDTH, "h": 1},
        "panels": [],
    }


def dashboard() -> dict[str, Any]:
    """Return the dashboard as Grafana reads it."""
    panels: list[dict[str, Any]] = []
    y = 0
    for row in ROWS:
        panels.append(_row(row, len(panels) + 1, y))
        y += 1
        for start in range(0, len(row.panels), _COLUMNS):
            for column, panel in enumerate(row.panels[start : start + _COLUMNS]):
                panels.append(_panel(panel, len(panels) + 1, column * _WIDTH, y))
            y += _HEIGHT
    return {
        "uid": "chattts",
        "title": "ChatTTS",
        "tags": ["chattts"],
        "schemaVersion": 39,
        "editable": False,
        "refresh": "10s",
        "time": {"from": "now-30m", "to": "now"},
        "timezone": "browser",
        "templating": {"list": [_variable("instance"), _variable("version")]},
        "panels": panels,
    }


def text() -> str:
    """Return the file's content."""
    return json.dumps(dashboard(), indent=1) + "\n"


if __name__ == "__main__":
    DASHBOARD.write_text(text(), encoding="utf-8")
