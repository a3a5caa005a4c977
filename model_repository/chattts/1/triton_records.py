"""Counting and logging what becomes of the requests for speech, through Triton."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

import triton_python_backend_utils as pb_utils
from chattts_pipeline import (
    RUNNING,
    SPECS,
    FrontMetrics,
    Journal,
    MetricTable,
    RequestLog,
    RequestRecord,
    RunningGauge,
    Settings,
)

# Times that the supervisor has started this server again. It sets this (embedded/supervisor.py).
RESTARTS_VARIABLE = "CHATTTS_SERVER_RESTARTS"


class Records:
    """The records of one front.

    Args:
        settings: What is counted and logged.
        facts: model_version, checkpoint, precision and untrained, of what is served.
        sample_rate: Hz.
    """

    def __init__(self, settings: Settings, facts: Mapping[str, Any], sample_rate: int) -> None:
        specs = SPECS if settings.metrics else [RUNNING]
        self._table = MetricTable(pb_utils.MetricFamily, facts["model_version"], specs)
        self.running = RunningGauge(self._table)
        """Requests that are being spoken."""
        self._sample_rate = sample_rate
        if settings.log_text:
            pb_utils.Logger.log_warn("chattts: log_text is on: the log will hold what callers say")
        log = RequestLog(_write, facts, settings.log_sampling, settings.log_text)
        if not settings.metrics:
            self._journal = Journal([log.take], lambda: None, log_failure)
            return
        metrics = FrontMetrics(self._table, facts, int(os.environ.get(RESTARTS_VARIABLE, "0")))
        self._journal = Journal([metrics.take, log.take], metrics.show, log_failure)

    def open(self, request_id: str, trace_id: str, received_at: float) -> RequestRecord:
        """Begin the record of a request.

        Args:
            request_id: The caller's name for it, or a drawn one.
            trace_id: Of the caller's trace; empty: none.
            received_at: Monotonic time in seconds.
        """
        return RequestRecord(
            request_id, trace_id, self._sample_rate, self._journal.put, received_at
        )

    def close(self) -> None:
        """Count and log what is left, and take back what is shown; no more may come."""
        self._journal.close()
        self._table.close()


def log_failure(trace: str) -> None:
    """Log a traceback."""
    pb_utils.Logger.log_error(f"chattts: {trace}")


def _write(line: str) -> None:
    """Write a line as it is, in one piece; Triton's own log would put a head and quotes around."""
    os.write(sys.stderr.fileno(), line.encode())
