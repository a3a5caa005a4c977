"""`bench`: a table per step, refusals counted."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from chattts_client import ServerError
from chattts_client.cli import main
from chattts_client.cli.bench import Sample, Step
from unit.client.fake_answers import Failure, Inputs, Outputs, Request, utterance
from unit.client.fake_triton import FakeTriton


def test_figures_are_those_of_the_samples() -> None:
    samples = [Sample(0.1 * number, 1.0 * number, 2.0) for number in range(1, 12)]
    figures = Step(4, 10.0, samples, [ServerError("x")]).figures()
    assert (figures["requests"], figures["errors"], figures["concurrency"]) == (12, 1, 4)
    assert figures["requests_per_s"] == pytest.approx(1.1)
    assert figures["audio_s_per_s"] == pytest.approx(2.2)
    assert figures["first_audio_p50_s"] == pytest.approx(0.6)
    assert figures["latency_p95_s"] == pytest.approx(10.5)
    assert figures["latency_p99_s"] == pytest.approx(10.9)
    assert figures["real_time_factor_p50"] == pytest.approx(3.0)


def test_what_was_not_measured_is_none() -> None:
    figures = Step(1, 1.0, [Sample(None, 1.0, 0.0)], []).figures()
    assert figures["first_audio_p50_s"] is None
    assert figures["real_time_factor_p50"] is None


def test_each_step_is_a_row(
    grpc_url: str, fake: FakeTriton, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "--url", grpc_url, "-j", "1,3", "-n", "5", "--seed", "7"]) == 0
    table = capsys.readouterr().out.splitlines()
    assert max(len(line) for line in table) <= 80
    assert [line.split()[:2] for line in table[-2:]] == [["1", "0"], ["3", "0"]]
    assert len(fake.inputs) == 1 + 2 * 5
    assert all(inputs["seed"] == 7 for inputs in fake.inputs)


def test_refusals_are_counted_and_not_repeated(
    grpc_url: str, fake: FakeTriton, capsys: pytest.CaptureFixture[str]
) -> None:
    def script(inputs: Inputs, request: Request) -> Iterator[Outputs]:
        if len(fake.inputs) % 2 == 0:
            raise Failure("UNAVAILABLE", "64 requests are running; try again in 1 s")
        yield from utterance()

    fake.script = script
    assert main(["bench", "--url", grpc_url, "-j", "1", "-n", "6", "--json"]) == 3
    captured = capsys.readouterr()
    (step,) = json.loads(captured.out)["steps"]
    assert (step["requests"], step["errors"]) == (6, 3)
    assert len(fake.inputs) == 7
    assert len(captured.err.splitlines()) == 1


def test_http_has_no_first_audio(
    http_url: str, fake: FakeTriton, capsys: pytest.CaptureFixture[str]
) -> None:
    fake.script = lambda *_: iter(utterance(1))
    assert main(["bench", "--url", http_url, "--http", "-j", "2", "-n", "2", "--json"]) == 0
    (step,) = json.loads(capsys.readouterr().out)["steps"]
    assert step["first_audio_p95_s"] is None
    assert step["latency_p95_s"] > 0


def test_wrong_steps_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "-j", "1,x"]) == 2
    assert "--concurrency: '1,x' is not whole numbers" in capsys.readouterr().err


def test_no_step_has_more_at_once_than_requests(
    grpc_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "--url", grpc_url, "-j", "1,4,8", "-n", "2", "--json"]) == 0
    captured = capsys.readouterr()
    assert [step["concurrency"] for step in json.loads(captured.out)["steps"]] == [1, 2]
    assert "warning: 2 requests per step" in captured.err


def test_figures_are_whole_on_a_narrow_terminal(
    grpc_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    assert main(["bench", "--url", grpc_url, "-j", "1", "-n", "2"]) == 0
    printed = capsys.readouterr().out
    assert "…" not in printed
    assert len(printed.splitlines()[-1].split()) == 10
