"""Load tests: texts, shapes, what records add up to, and the report."""

from __future__ import annotations

import argparse
import base64
import json
import re
from pathlib import Path
from typing import Any

import perf
import pytest
from chattts_client import (
    ChatTTSClient,
    MetricSample,
    MetricsSnapshot,
    ServerUnavailableError,
)
from chattts_load import plots, report
from chattts_load.figures import by_length, figures, timeline
from chattts_load.memory import UNKNOWN, most_held, of_metrics
from chattts_load.perf_analyzer import read_latencies, read_speech_export, speech_input
from chattts_load.playback import Playback
from chattts_load.records import Record, RecordWriter, ended_within, read_records
from chattts_load.room import max_streams_of, with_room
from chattts_load.shapes import SHAPES, Shape
from chattts_load.texts import LANGUAGES, LENGTHS, Text, TextMix, load_texts, read_weights

import loadtest


def record(started_s: float = 0.0, latency_s: float = 1.0, **values: Any) -> Record:
    """A good record of a stream that made two seconds of audio."""
    common: dict[str, Any] = {
        "kind": "stream",
        "language": "en",
        "length": "short",
        "characters": 20,
        "first_audio_s": latency_s / 4,
        "audio_s": 2.0,
        "waits": 0,
        "waited_s": 0.0,
    }
    return Record(started_s=started_s, latency_s=latency_s, **(common | values))


def test_a_listener_waits_only_for_pieces_that_come_after_the_last_was_played() -> None:
    assert Playback([1.0, 1.4, 1.9], [0.5, 0.5, 0.5]).waits_s == []
    # The second piece comes 0.2 s late; the third is in time for the playback that it shifted.
    assert Playback([1.0, 1.7, 2.1], [0.5, 0.5, 0.5]).waits_s == pytest.approx([0.2])
    assert Playback([], []).waits_s == []


def test_there_are_texts_of_every_length_in_every_language() -> None:
    texts = load_texts()
    assert {(one.language, one.length) for one in texts} == {
        (language, length) for language in LANGUAGES for length in LENGTHS
    }
    for language in LANGUAGES:
        sizes = [
            [len(one.text) for one in texts if (one.language, one.length) == (language, length)]
            for length in LENGTHS
        ]
        assert max(sizes[0]) < min(sizes[1])
        assert max(sizes[1]) < min(sizes[2])


def test_texts_are_drawn_by_weight_and_the_same_for_a_seed() -> None:
    def draws(seed: int) -> list[tuple[Text, int]]:
        mix = TextMix(load_texts(), {"short": 3, "long": 1}, {"zh": 1}, seed)
        return [mix.draw() for _ in range(1000)]

    drawn = draws(1)
    assert drawn == draws(1) != draws(2)
    assert {text.language for text, _ in drawn} == {"zh"}
    num_short = sum(text.length == "short" for text, _ in drawn)
    assert 700 < num_short < 800
    assert num_short + sum(text.length == "long" for text, _ in drawn) == 1000


def test_weights_of_nothing_are_refused() -> None:
    assert read_weights("en=7,zh", LANGUAGES) == {"en": 7.0, "zh": 1.0}
    for wrong in ("fr=1", "en=much", "en=0,zh=0", "en=2,zh=-1", ""):
        with pytest.raises(argparse.ArgumentTypeError):
            read_weights(wrong, LANGUAGES)
    with pytest.raises(ValueError, match="no text"):
        TextMix(load_texts(), {"short": 1}, {"fr": 1}, seed=1)


def test_shapes() -> None:
    def at(name: str, *shares: float) -> list[int | None]:
        shape = Shape(name, 16, 100.0)
        return [shape.users_at(100.0 * share) for share in shares]

    assert at("constant", 0, 0.5, 0.99) == [16, 16, 16]
    assert at("steps", 0, 0.21, 0.41, 0.61, 0.81) == [1, 2, 4, 8, 16]
    assert at("ramp", 0, 0.25, 0.5, 0.99) == [1, 5, 9, 16]
    assert at("spike", 0, 0.3, 0.34, 0.66, 0.67) == [2, 2, 16, 16, 2]
    assert at("soak", 0, 0.05, 0.1, 0.9) == [1, 8, 16, 16]
    for name in SHAPES:
        assert at(name, 1.0, 2.0) == [None, None]
        assert Shape(name, 1, 10.0).users_at(5.0) == 1


def test_records_come_back_from_their_file(tmp_path: Path) -> None:
    records = [record(1.5), record(2.5, error="ServerError", audio_s=0.0)]
    writer = RecordWriter(tmp_path / "records")
    for one in records:
        writer.write(one)
    writer.close()
    assert read_records(tmp_path / "records") == records


def test_a_step_counts_what_ended_in_it_whenever_that_began() -> None:
    # Ends at 1, 3, 5, 7 and 11.
    records = [record(0, 1), record(0, 3), record(4, 1), record(1, 6), record(9, 2)]
    assert ended_within(records, settle_s=2, seconds=8) == records[1:4]


def test_figures_leave_errors_out_of_the_times_and_count_them() -> None:
    records = [record(number, 1.0 + number, waits=number % 2, waited_s=0.25) for number in range(4)]
    records.append(record(1.0, 1.0, error="ServerUnavailableError", audio_s=0.0))
    found = figures(records, concurrency=3, settle_s=0.0, seconds=10.0)
    assert (found.requests, found.errors, found.underruns) == (5, 1, 2)
    assert found.qps == pytest.approx(0.4)
    assert found.audio_s_per_s == pytest.approx(0.8)
    assert found.latency_mean_s == pytest.approx(2.5)
    assert found.latency_p50_s == pytest.approx(2.5)
    assert found.first_audio_p50_s == pytest.approx(0.625)
    assert found.real_time_factor_p50 == pytest.approx(1.25)
    with pytest.raises(ValueError, match="none ended well.*ServerUnavailableError"):
        figures(records[-1:], 3, 0.0, 10.0)


def test_a_timeline_has_the_requests_that_ran_in_each_stretch() -> None:
    records = [record(0, 4), record(1, 4), record(20, 2)]
    stretches = timeline(records, 5.0)
    assert [(middle_s, one.concurrency) for middle_s, one in stretches] == [
        (2.5, 2),
        (7.5, 0),
        (22.5, 0),
    ]
    assert timeline([], 5.0) == []


def test_reports_have_every_step(tmp_path: Path) -> None:
    steps = [
        figures([record(0, users / 4)] * users, users, 0.0, 10.0, users * 10**8)
        for users in (1, 4, 16)
    ]
    rows = report.markdown(steps).splitlines()
    assert rows[2] == "| 1 | 0.1 | 0.25 | 0.25 | 0.06 / 0.06 | 100 |"
    assert len(rows) == 5
    report.write_csv(steps, tmp_path / "steps.csv")
    assert len((tmp_path / "steps.csv").read_text().splitlines()) == 4
    classes = by_length([record(), record(length="long"), record(length="long", audio_s=0.0)], 4)
    assert [(one.length, one.requests) for one in classes] == [("short", 1), ("long", 1)]
    plot = plots.over_concurrency(steps)
    page = report.html("Load <1>", {"users": "a & b"}, steps, classes, plot, ["x<y"])
    assert page.count("<tr>") == 2 + len(steps) + len(classes)
    assert "Load &lt;1&gt;" in page
    assert "users: a &amp; b" in page
    assert "x&lt;y" in page
    image = re.search(r'base64,([^"]+)"', page)
    assert image
    assert base64.b64decode(image[1]).startswith(b"\x89PNG")
    assert "http" not in page  # the page needs nothing else
    assert plots.over_time([(2.5, steps[0]), (7.5, steps[1])]).startswith(b"\x89PNG")


def metrics_of(**gauges: float) -> MetricsSnapshot:
    """A snapshot with the resident memory of each part."""
    samples = tuple(
        MetricSample(f"chattts_{part}_resident_memory_bytes", {"version": "1"}, value)
        for part, value in gauges.items()
    )
    counts = dict.fromkeys(
        ("running", "waiting", "sequences_running", "kv_blocks_used", "kv_blocks_total")
    )
    return MetricsSnapshot(url="", samples=samples, **counts)


def test_memory_of_a_server_elsewhere_is_what_its_metrics_say(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = iter([metrics_of(front=1, engine=3), metrics_of(front=7, engine=8)])

    def next_answer(client: ChatTTSClient, **limits: object) -> MetricsSnapshot:
        try:
            return next(answers)
        except StopIteration:
            raise ServerUnavailableError("scripted") from None

    monkeypatch.setattr(ChatTTSClient, "metrics_snapshot", next_answer)
    with ChatTTSClient("127.0.0.1:1", metrics_url="127.0.0.1:1") as client:
        source = of_metrics(client)
        assert source.look
        with most_held(source) as held:
            pass
        assert held.num_bytes == 15
        assert source.look().rss == 0  # one answer that lacks costs only itself
        monkeypatch.setattr(ChatTTSClient, "metrics_snapshot", lambda *_, **__: metrics_of())
        with pytest.raises(ValueError, match="metrics off"):
            of_metrics(client)


def test_memory_that_nobody_knows_is_said_to_be_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    with most_held(UNKNOWN) as held:
        pass
    step = figures([record()], 1, 0.0, 10.0, held.num_bytes)
    assert report.markdown([step]).endswith("| not known |")
    assert plots.over_concurrency([step]).startswith(b"\x89PNG")
    with pytest.raises(SystemExit):
        loadtest.parse(["--metrics-url", "host:8002"])
    assert "only with --url" in capsys.readouterr().err


def speech_export(texts: list[str]) -> dict[str, Any]:
    """As perf_analyzer writes it: two pieces of 0.5 s, the second one 0.3 s too late, then none."""
    half_second = bytes(24000)
    pieces = (bytes(44) + half_second, half_second, b"")
    requests = [
        {
            "timestamp": 10**18 + number * 10**9,
            "request_inputs": {"text": text, "voice": "en", "seed": 1},
            "response_timestamps": [
                10**18 + number * 10**9 + 100_000_000 * tenths for tenths in (2, 10, 11)
            ],
            "response_outputs": [
                {"audio_bytes": base64.b64encode(piece).decode()} for piece in pieces
            ],
        }
        for number, text in enumerate(texts)
    ]
    return {"experiments": [{"experiment": {"mode": "concurrency"}, "requests": requests}]}


def test_a_profile_export_becomes_records(tmp_path: Path) -> None:
    texts = load_texts()[:2]
    path = tmp_path / "export.json"
    path.write_text(json.dumps(speech_export([one.text for one in texts])))
    records = read_speech_export(path, texts)
    assert [one.characters for one in records] == [len(one.text) for one in texts]
    for one in records:
        assert one.is_ok
        assert one.audio_s == pytest.approx(1.0)
        assert one.first_audio_s == pytest.approx(0.2)
        assert one.latency_s == pytest.approx(1.1)
        assert (one.waits, one.waited_s) == (1, pytest.approx(0.3))


def test_perf_analyzer_gets_each_text_with_its_voice() -> None:
    text = Text("您好", "zh", "short")
    (entry,) = speech_input([(text, 7)])["data"]
    assert entry["text"] == {"content": ["您好"], "shape": [1]}
    assert entry["voice"]["content"] == ["zh"]
    assert entry["seed"]["content"] == [7]


def test_percentiles_of_perf_analyzer_are_seconds(tmp_path: Path) -> None:
    path = tmp_path / "report.csv"
    path.write_text(
        "Concurrency,Inferences/Second,p50 latency,p90 latency,p95 latency,p99 latency\n"
        "8,199.3,11686,13120,15140,20916\n"
    )
    found = read_latencies(path)
    assert found["qps"] == 199.3
    assert found["latency_p99_s"] == pytest.approx(0.020916)


def test_only_the_time_in_which_all_ran_counts() -> None:
    # Two at once: the first end at 1, the last call at 4, the last end at 6.
    records = [record(0, 1), record(0, 2), record(1, 3), record(2, 2), record(4, 1), record(4, 2)]
    settle_s, seconds = perf.full_load(records)
    assert (settle_s, seconds) == (1, 3)
    # As few requests as run at once.
    settle_s, seconds = perf.full_load(records[:2])
    assert len(ended_within(records[:2], settle_s, seconds)) == 2


def test_a_server_under_load_has_room_for_all_callers(tmp_path: Path) -> None:
    built = tmp_path / "built"
    for name in ("chattts", "chattts_gpt"):
        (built / name / "1").mkdir(parents=True)
        (built / name / "1" / "weights").touch()
        limit = 'parameters [ { key: "max_streams" value: { string_value: "64" } } ]'
        (built / name / "config.pbtxt").write_text(limit)
    assert with_room(built, tmp_path / "room", most=64) == built
    for _ in range(2):  # also over what an earlier run left
        room = with_room(built, tmp_path / "room", most=65)
        assert max_streams_of(room) == 65
        assert (room / "chattts_gpt" / "1" / "weights").exists()
        assert '"64"' in (room / "chattts_gpt" / "config.pbtxt").read_text()
    assert max_streams_of(built) == 64


@pytest.mark.parametrize(
    "wrong",
    [
        ["--concurrency", "0"],
        ["--seconds", "5", "--settle", "5"],
        ["--kinds", "telnet"],
        ["--lengths", "huge=1"],
        ["--shape", "poisson", "--rate", "0"],
        ["--shape", "spike", "--rate", "2"],
        ["--shape", "poisson", "--users", "2"],
        ["--users", "2"],
        ["--repository", "/nowhere"],
    ],
)
def test_a_wrong_argument_is_refused_before_anything_runs(
    wrong: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        loadtest.parse(["--output", str(tmp_path), "--work", str(tmp_path), *wrong])
    assert wrong[-2] in capsys.readouterr().err


def test_a_server_that_is_not_there_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nobody = ["--url", "localhost:1", "--http-url", "localhost:1"]
    assert loadtest.main([*nobody, "--output", str(tmp_path)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("loadtest: ")
