"""The preview asks what Grafana would ask, and draws what came back."""

from __future__ import annotations

from pathlib import Path

import dashboard_preview
import make_dashboard
import pytest
from chattts_dashboard.dashboard import Panel, Query, read_panels
from chattts_dashboard.drawing import draw, draw_lines
from chattts_dashboard.prometheus import Prometheus, Series
from matplotlib.figure import Figure
from PIL import Image

PANELS = read_panels(rate_range="7s")


def test_panels_are_those_of_the_dashboard_in_order() -> None:
    rows = [(row.title, panel.title) for row in make_dashboard.ROWS for panel in row.panels]
    assert [(panel.row, panel.title) for panel in PANELS] == rows
    limits = {panel.title: panel.limit for panel in PANELS}
    assert limits["Real-time factor"] == 1
    assert limits["Characters"] is None


def test_no_variable_of_grafana_is_left() -> None:
    expressions = [query.expr for panel in PANELS for query in panel.queries]
    assert not [expr for expr in expressions if "$" in expr]
    assert any('instance=~".+",version=~".+"' in expr and "[7s]" in expr for expr in expressions)


def test_only_queries_about_a_gpu_may_be_without_data_on_a_cpu() -> None:
    titles = {panel.title for panel in PANELS for query in panel.queries if query.needs_gpu}
    assert titles == {"GPU use", "GPU memory", "GPU power"}


def test_panels_with_data_are_drawn(tmp_path: Path) -> None:
    lines = Panel("Row", "Lines", "s", "timeseries", 1.0, (Query("a", "{{x}}"), Query("b", "b")))
    table = Panel("Row", "Table", "short", "table", None, (Query("c", "c"),))
    empty = Panel("Other", "Empty", "s", "timeseries", None, (Query("d", "d"),))
    data = {
        "a": [Series({"x": "one"}, ((10.0, 0.5), (11.0, 0.7)))],
        "b": [],
        "c": [Series({"version": "1"}, ((10.0, 1.0),))],
        "d": [],
    }
    sizes = []
    for panels in ([lines], [lines, table, empty], [lines] * 7):
        draw("title", panels, data, 10.0, tmp_path / "a.png")
        with Image.open(tmp_path / "a.png") as image:
            sizes.append(image.size)
    assert sizes[0] == sizes[1]
    assert sizes[2][1] > sizes[0][1]


@pytest.mark.parametrize(
    ("unit", "value", "shown"),
    [
        ("bytes", 2e8, (200.0, "MB")),
        ("bytes", 3e9, (3.0, "GB")),
        ("percentunit", 0.5, (50.0, "%")),
        ("short", 7.0, (7.0, "")),
    ],
)
def test_numbers_are_drawn_in_a_unit_that_can_be_read(
    unit: str, value: float, shown: tuple[float, str]
) -> None:
    axes = Figure().add_subplot()
    panel = Panel("Row", "P", unit, "timeseries", None, (Query("a", "{{x}}"),))
    series = [Series({"x": str(number)}, ((1.0, value),)) for number in range(8)]
    draw_lines(axes, panel, {"a": series}, 0.0)
    assert [line.get_ydata()[0] for line in axes.lines] == pytest.approx([shown[0]] * 8)
    assert axes.get_ylabel() == shown[1]
    legend = axes.get_legend()
    assert legend
    names = [text.get_text() for text in legend.get_texts()]
    assert names == ["0", "1", "2", "3", "4", "and 3 more"]


def test_a_line_at_nothing_can_be_seen() -> None:
    axes = Figure().add_subplot()
    panel = Panel("Row", "P", "short", "timeseries", None, (Query("a", "a"),))
    draw_lines(axes, panel, {"a": [Series({}, ((1.0, 0.0),)), Series({}, ())]}, 0.0)
    bottom, top = axes.get_ylim()
    assert bottom < 0 < top


def test_without_prometheus_the_reason_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(dashboard_preview, "PROGRAM", None)
    assert dashboard_preview.main(["--seconds", "20"]) == 1
    assert "apt-get install prometheus" in capsys.readouterr().err


def test_prometheus_gets_the_rules_and_one_target() -> None:
    config = Prometheus("127.0.0.1:1", interval_s=3)._config("127.0.0.1:2")
    assert set(config["global"].values()) == {"3s"}
    server, itself = config["scrape_configs"]
    assert server == {"job_name": "chattts", "static_configs": [{"targets": ["127.0.0.1:1"]}]}
    assert itself["static_configs"] == [{"targets": ["127.0.0.1:2"]}]
    assert all(Path(pattern).parent.is_dir() for pattern in config["rule_files"])
