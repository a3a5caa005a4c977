"""`chattts` voices, health, models and normalize: what they print."""

from __future__ import annotations

import json

import pytest
from chattts_client import ChatTTSClient, ModelInfo
from chattts_client.cli import main
from unit.client.fake_answers import (
    dry_run_answer,
    voices_answer,
)
from unit.client.fake_triton import FakeTriton


def test_voices_are_printed(
    grpc_url: str, fake: FakeTriton, capsys: pytest.CaptureFixture[str]
) -> None:
    fake.script = lambda inputs, request: iter([voices_answer()])
    assert main(["voices", "--url", grpc_url]) == 0
    assert capsys.readouterr().out == "en\ten\tfemale\tspeaker\tnot auditioned\tEnglish, calm\n"
    assert main(["voices", "--url", grpc_url, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["name"] == "en"


def test_health_says_why_not(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["health", "--url", "127.0.0.1:1", "--retries", "0"]
    assert main(command) == 3
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("127.0.0.1:1: not ready: ")
    assert main([*command, "--json"]) == 3
    found = json.loads(capsys.readouterr().out)
    assert (found["live"], found["ready"]) == (False, False)
    assert line.endswith(found["reason"])


@pytest.mark.parametrize("untrained", [True, False])
def test_models_are_a_line_each(
    untrained: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    models = (
        ModelInfo(
            name="chattts",
            version="2",
            ready=True,
            checkpoint="demo",
            precision="int8",
            untrained=untrained,
        ),
        ModelInfo(name="chattts_gpt", version="1", ready=False),
    )
    monkeypatch.setattr(ChatTTSClient, "models", lambda client: models)
    assert main(["models"]) == 0
    weights = "demo (UNTRAINED)" if untrained else "demo"
    expected = f"chattts\t2\tready\t{weights}\tint8\nchattts_gpt\t1\tnot ready\t\t\n"
    assert capsys.readouterr().out == expected


SAID = "at three\t(0.4 s, then 500 ms of silence)\n"
DROPPED = "warning: characters 4 to 5, '☃': a symbol that has no reading was left out"


def test_a_normalized_text_is_printed(
    grpc_url: str, fake: FakeTriton, capsys: pytest.CaptureFixture[str]
) -> None:
    fake.script = lambda inputs, request: iter([dry_run_answer()])
    assert main(["normalize", "at 3☃", "--url", grpc_url]) == 0
    captured = capsys.readouterr()
    assert captured.out == SAID
    assert captured.err == f"{DROPPED} (dropped_symbol)\n"


def test_a_text_is_normalized_without_a_server(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["normalize", "at 3☃", "--url", "localhost:1", "--offline"]
    assert main([*command, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [segment["text"].strip() for segment in found["segments"]] == ["at three"]
    assert "".join(span["text"] for span in found["alignment"]) == "at 3☃"
    assert main([*command, "--options", '{"speed": 2}']) == 2
    assert "options: speed is none of the text front end" in capsys.readouterr().err
