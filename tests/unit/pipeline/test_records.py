"""From a request's pieces and end to metrics and a line of the log."""

from __future__ import annotations

import json
import threading
import weakref
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from chattts_pipeline.journal import Journal
from chattts_pipeline.metrics import SPECS, FrontMetrics, MetricTable, RunningGauge
from chattts_pipeline.outcome import Outcome, Progress, RequestRecord, trace_id
from chattts_pipeline.request import SpeechRequest
from chattts_pipeline.request_log import PREFIX, RequestLog
from fake_metrics import FakeFamily, FakeMetric

RATE = 24000
FACTS = {"model_version": "2", "checkpoint": "tiny", "precision": "int8", "untrained": True}
SECRET = "ID 000000190001010000 测试"
STREAM = SpeechRequest(text=SECRET, seed=7, priority=1)
UNARY = SpeechRequest(text=SECRET, stream=False)
SPOKEN = Progress("en", 7, ("eos", "length"), 120, 2.5, 3, ("homophone", "homophone"), ("loop",))


def outcome_of(
    pieces: Sequence[tuple[float, int]],
    code: str = "OK",
    request: SpeechRequest | None = STREAM,
    progress: Progress = SPOKEN,
    ended_at: float = 11.0,
) -> Outcome:
    """Send pieces (time, samples) of a request that came at 10.0; return what it came to."""
    times = iter([when for when, _ in pieces if _] + [ended_at])
    outcomes: list[Outcome] = []
    record = RequestRecord("mine", "", RATE, outcomes.append, 10.0, lambda: next(times))
    record.request = request
    record.progress = lambda: progress
    for _, num_samples in pieces:
        record.has_sent(num_samples)
    record.end(code)
    record.end("INTERNAL")
    (outcome,) = outcomes
    return outcome


@pytest.fixture
def metrics() -> FrontMetrics:
    FakeFamily.made.clear()
    return FrontMetrics(MetricTable(FakeFamily, "2", SPECS), FACTS, num_restarts=4)


def metric(name: str, *labels: str) -> FakeMetric:
    return FakeFamily.made[name].metrics[("2", *labels)]


def totals(name: str) -> dict[tuple[str, ...], float]:
    """Labels after the version to value, of what is not 0."""
    metrics = FakeFamily.made[name].metrics
    return {labels[1:]: metric.value for labels, metric in metrics.items() if metric.value}


def test_times_count_from_the_arrival_and_gaps_from_piece_to_piece() -> None:
    outcome = outcome_of([(10.25, RATE), (10.5, RATE), (10.75, 0)])
    assert (outcome.first_audio_s, outcome.latency_s) == (0.25, 1.0)
    assert (outcome.gaps_s, outcome.audio_s, outcome.underrun_s) == ((0.25,), 2.0, 0.0)


def test_a_listener_who_runs_dry_waits_and_goes_on() -> None:
    """One second from 11, the next at 12.5, then at 13.75: half and a quarter second dry."""
    outcome = outcome_of([(11.0, RATE), (12.5, RATE), (13.75, RATE), (14.0, RATE)], ended_at=14.0)
    assert outcome.underrun_s == 0.75


@pytest.mark.parametrize(
    ("code", "reasons", "worst"),
    [
        ("OK", ("eos", "length", "eos"), "length"),
        ("OK", ("length", "deadline"), "deadline"),
        ("OK", (), "none"),
        ("CANCELLED", ("eos", ""), "none"),
    ],
)
def test_the_worst_finish_reason_counts(code: str, reasons: tuple[str, ...], worst: str) -> None:
    progress = Progress(finish_reasons=reasons)
    assert outcome_of([], code, progress=progress).finish_reason == worst


def test_every_family_that_is_listed_exists_and_no_other(metrics: FrontMetrics) -> None:
    assert {spec.name: spec.kind for spec in SPECS} == {
        name: family.kind for name, family in FakeFamily.made.items()
    }
    for spec in SPECS:
        assert spec.name.startswith(("chattts_", "tts_"))
        assert spec.name.endswith("_total") == (spec.kind == "counter")
        assert list(spec.buckets) == sorted(spec.buckets)


def test_a_good_stream_is_counted(metrics: FrontMetrics) -> None:
    metrics.take(outcome_of([(10.25, RATE), (10.5, RATE)]))
    metrics.show()
    assert totals("chattts_requests_total") == {("OK", "length"): 1}
    assert metric("tts_latency_seconds", "int8").observed == [1.0]
    assert metric("chattts_time_to_first_audio_seconds", "stream").observed == [0.25]
    assert metric("chattts_real_time_factor").observed == [0.5]
    assert metric("chattts_chunk_gap_seconds").observed == [0.25]
    assert metric("chattts_audio_seconds_total").value == 2
    assert metric("chattts_characters_total").value == len(SECRET)
    assert totals("chattts_warnings_total") == {("homophone",): 2}
    assert totals("chattts_quality_total") == {("loop",): 1}
    assert metric("chattts_underruns_total").value == 0


def test_one_answer_has_no_gap_and_its_own_mode(metrics: FrontMetrics) -> None:
    metrics.take(outcome_of([(10.5, RATE)], request=UNARY))
    metrics.show()
    assert metric("chattts_time_to_first_audio_seconds", "unary").observed == [0.5]
    assert metric("chattts_chunk_gap_seconds").observed == []


def test_what_failed_has_no_latency_but_the_audio_that_went_out(metrics: FrontMetrics) -> None:
    metrics.take(outcome_of([(10.5, RATE), (12.0, RATE)], "CANCELLED", ended_at=12.0))
    metrics.take(outcome_of([], "INVALID_ARG", request=None, progress=Progress()))
    metrics.show()
    assert totals("chattts_requests_total") == {
        ("CANCELLED", "none"): 1,
        ("INVALID_ARG", "none"): 1,
    }
    assert metric("tts_latency_seconds", "int8").observed == []
    assert metric("chattts_characters_total").value == 0
    assert metric("chattts_audio_seconds_total").value == 2
    assert metric("chattts_underruns_total").value == 1
    assert metric("chattts_underrun_seconds_total").value == 0.5


def test_a_stream_without_audio_is_counted_and_has_no_real_time_factor(
    metrics: FrontMetrics,
) -> None:
    metrics.take(outcome_of([], progress=Progress()))
    metrics.show()
    assert totals("chattts_requests_total") == {("OK", "none"): 1}
    assert metric("tts_latency_seconds", "int8").observed == [1.0]
    assert metric("chattts_real_time_factor").observed == []


def test_what_is_served_is_shown(metrics: FrontMetrics) -> None:
    assert totals("chattts_info") == {("tiny", "int8", "true"): 1}
    assert metric("chattts_server_restarts").value == 4
    assert metric("chattts_front_resident_memory_bytes").value > 1e6
    metrics.show()


def test_a_process_that_ends_takes_back_what_it_shows_and_leaves_what_others_show() -> None:
    FakeFamily.made.clear()
    table = MetricTable(FakeFamily, "2", SPECS)
    metrics = FrontMetrics(table, FACTS, num_restarts=4)
    metrics.take(outcome_of([(10.25, RATE)]))
    metrics.show()
    for name, labels in (("info", ("tiny", "int8", "true")), ("front_resident_memory_bytes", ())):
        metric(f"chattts_{name}", *labels).increment(1)  # the process that follows
    table.close()
    assert totals("chattts_info") == {("tiny", "int8", "true"): 1}
    assert metric("chattts_front_resident_memory_bytes").value == 1
    assert metric("chattts_server_restarts").value == 4  # else its return would be a restart
    assert totals("chattts_requests_total") == {("OK", "length"): 1}


def test_threads_that_run_and_the_one_that_counts_never_change_metrics_at_once() -> None:
    FakeFamily.made.clear()
    table = MetricTable(FakeFamily, "2", SPECS)
    running, metrics = RunningGauge(table), FrontMetrics(table, FACTS, 0)
    failures: list[str] = []
    journal = Journal([metrics.take], metrics.show, failures.append)
    outcome = outcome_of([(10.25, RATE), (10.5, RATE)])

    def run(_: int) -> None:
        running.add(1)
        journal.put(outcome)
        running.add(-1)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(run, range(400)))
    journal.close()
    assert failures == []
    assert running.count == metric("chattts_running_requests").value == 0
    assert totals("chattts_requests_total") == {("OK", "length"): 400}
    assert len(metric("chattts_chunk_gap_seconds").observed) == 400


def test_a_taker_that_fails_is_reported_and_the_others_go_on() -> None:
    failures: list[str] = []
    taken = threading.Event()

    def fail(outcome: Outcome) -> None:
        raise RuntimeError("scripted failure")

    journal = Journal([fail, lambda outcome: taken.set()], lambda: None, failures.append)
    journal.put(outcome_of([]))
    journal.close()
    assert taken.is_set()
    assert "scripted failure" in failures[0]


def log_lines(outcome: Outcome, **options: Any) -> list[str]:
    lines: list[str] = []
    RequestLog(lines.append, FACTS, **options).take(outcome)
    return lines


def test_a_request_is_one_line_of_json_that_can_be_found_and_has_no_text() -> None:
    (line,) = log_lines(outcome_of([(10.25, RATE), (10.5, RATE)]))
    assert line.startswith(PREFIX)
    assert line.index("\n") == len(line) - 1
    entry = json.loads(line)
    assert entry.pop("time").endswith("+00:00")
    assert entry == {
        "event": "chattts_request",
        "id": "mine",
        "trace_id": "",
        "code": "OK",
        "finish_reasons": ["eos", "length"],
        "mode": "stream",
        "priority": 1,
        "voice": "en",
        "seed": 7,
        "text_len": len(SECRET),
        "tokens": 120,
        "audio_s": 2.0,
        "latency_s": 1.0,
        "first_audio_s": 0.25,
        "queue_ms": 3,
        "underrun_s": 0.0,
        "mean_batch": 2.5,
        "warnings": ["homophone"],
        "quality": ["loop"],
        "retried": False,
        **FACTS,
    }


def test_the_text_is_there_if_the_operator_wants_it() -> None:
    assert json.loads(log_lines(outcome_of([]), has_text=True)[0])["text"] == SECRET
    unread = outcome_of([], "INVALID_ARG", request=None)
    assert "text" not in json.loads(log_lines(unread, has_text=True)[0])


def test_good_requests_are_sampled_and_errors_always_there() -> None:
    draws = iter([0.2, 0.3])
    options: dict[str, Any] = {"sampling": 0.25, "draw": lambda: next(draws)}
    assert len(log_lines(outcome_of([]), **options)) == 1
    assert len(log_lines(outcome_of([]), **options)) == 0
    assert len(log_lines(outcome_of([], "CANCELLED"), sampling=0.0)) == 1
    assert len(log_lines(outcome_of([]), sampling=0.0)) == 0
    assert len(log_lines(outcome_of([]), sampling=1.0)) == 1


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (f"00-{'ab' * 16}-{'cd' * 8}-01", "ab" * 16),
        (f"cc-{'ab' * 16}-{'cd' * 8}-01-what-comes", "ab" * 16),
        (f"00-{'00' * 16}-{'cd' * 8}-01", ""),
        (f"00-{'AB' * 16}-{'cd' * 8}-01", ""),
        ("spam\n", ""),
        (7, ""),
        (None, ""),
    ],
)
def test_only_a_trace_context_gives_a_trace_id(header: object, expected: str) -> None:
    assert trace_id(header) == expected


def test_a_record_lets_go_of_the_speech_at_its_end() -> None:
    """Else the two hold each other, and with them all audio, until Python looks for cycles."""

    class Speech:
        def __init__(self, record: RequestRecord) -> None:
            self.record = record

        def progress(self) -> Progress:
            return Progress(voice="anna")

    ended: list[Outcome] = []
    record = RequestRecord("r", "", 24000, ended.append, 0.0)
    speech = Speech(record)
    record.progress = speech.progress
    gone = weakref.ref(speech)
    del speech
    assert gone() is not None
    record.end("OK")
    assert ended[0].progress.voice == "anna"
    assert gone() is None
