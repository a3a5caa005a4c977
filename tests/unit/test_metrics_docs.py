"""docs/metrics.md lists what the code registers, word for word.

`python -m pytest tests/unit/test_metrics_docs.py` shows the table that it should have.
"""

from __future__ import annotations

import json

import pytest
from chattts_pipeline import metrics, quality
from chattts_pipeline.outcome import Outcome, Progress
from chattts_pipeline.request_log import RequestLog
from metric_tables import DOCUMENT, documented, tables


@pytest.mark.parametrize("name", tables())
def test_the_tables_are_those_of_the_code(name: str) -> None:
    assert documented()[name] == tables()[name], f"it should be:\n{tables()[name]}"


def test_every_field_of_the_log_and_every_fault_is_explained() -> None:
    lines: list[str] = []
    facts = {"model_version": "1", "checkpoint": "", "precision": "", "untrained": False}
    outcome = Outcome(
        request_id="",
        trace_id="",
        code="OK",
        request=None,
        progress=Progress(),
        latency_s=0.0,
        first_audio_s=None,
        audio_s=0.0,
        gaps_s=(),
        underrun_s=0.0,
    )
    RequestLog(lines.append, facts).take(outcome)
    text = DOCUMENT.read_text(encoding="utf-8")
    for name in (*json.loads(lines[0]), "text", *quality.REASONS):
        assert f"`{name}`" in text, name


def test_the_thresholds_in_the_text_are_those_of_the_code() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    for number in (
        f"{quality.SHORTEST_RATIO:g} × estimate − {quality.SHORTEST_MARGIN_S:g} s",
        f"{quality.LONGEST_RATIO:g} × estimate + {quality.LONGEST_MARGIN_S:g} s",
        f"{quality.MIN_LOUD_S * 1000:g} ms",
        f"{quality.MAX_CLIPPED_SHARE:.1%}",
        f"{quality.MAX_PERIOD} steps",
    ):
        assert number in text, number
    assert metrics.RUNNING.name in text
