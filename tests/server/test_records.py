"""Counters, histograms and the log of a real server against what its clients counted."""

from __future__ import annotations

import json
import math
import re
import statistics
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http
from ear import SENTENCES
from launcher import EmbeddedServer
from metric_tables import ONLY_ON_A_GPU, names
from metrics import read_metrics
from repository_copies import copy_repository
from speech_calls import CallError, Response, open_stream, stream, unary_grpc, unary_http

LIMIT_S = 60.0
MAX_STREAMS = 8
CALLERS = 12
"""More than streams: some are refused."""
REQUESTS = 520
SECRET = "000000190001010000"
TEXT = f"hello {SECRET} world. this is a test ☃"
LONG = {"min_new_tokens": 2048, "max_new_tokens": 2048}
STEADY = {"min_new_tokens": 600, "max_new_tokens": 600}
_LABEL = re.compile(r'(\w+)="([^"]*)"')
WORST = ("eos", "length", "deadline")


@pytest.fixture(scope="module")
def server(
    tiny_repository: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[EmbeddedServer]:
    """A server of its own, so that nobody else's requests are counted."""
    folder = tmp_path_factory.mktemp("records")
    repository = copy_repository(tiny_repository, folder / "models", max_streams=MAX_STREAMS)
    server = EmbeddedServer(repository)
    server.start()
    yield server
    server.kill()


@dataclass
class Tally:
    """What clients saw."""

    ends: Counter[tuple[str, str]] = field(default_factory=Counter)
    pieces: Counter[str] = field(default_factory=Counter)
    """Answers with audio by mode, those that came to their end, and gaps between pieces."""
    warnings: Counter[str] = field(default_factory=Counter)
    quality: Counter[str] = field(default_factory=Counter)
    num_samples: int = 0
    num_characters: int = 0

    def add(self, mode: str, text: str, responses: list[Response]) -> None:
        heard = [response for response in responses if len(response.samples)]
        if heard:
            self.pieces["whole"] += responses[-1].is_final
            self.pieces[f"first {mode}"] += 1
            self.pieces["gaps"] += len(heard) - 1
        self.num_samples += sum(len(response.samples) for response in heard)
        if not responses[-1].is_final:
            self.ends["CANCELLED", "none"] += 1
            return
        metadata = responses[-1].metadata
        worst = max(metadata["finish_reasons"], key=WORST.index, default="none")
        self.ends["OK", worst] += 1
        self.num_characters += len(text)
        self.warnings.update(warning["code"] for warning in metadata["warnings"])
        self.quality.update(metadata["quality"])


def family(server: EmbeddedServer, name: str, *labels: str) -> dict[tuple[str, ...], float]:
    """Values by some of the labels, of what is not 0."""
    found = {}
    for key, value in read_metrics(server).items():
        if key.partition("{")[0] == name and value:
            of_metric = dict(_LABEL.findall(key))
            assert of_metric["version"] == "1"
            found[tuple(of_metric[label] for label in labels)] = value
    return found


def value(server: EmbeddedServer, name: str) -> float:
    return sum(family(server, name).values())


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def ends(server: EmbeddedServer) -> Counter[tuple[str, ...]]:
    counted = family(server, "chattts_requests_total", "code", "finish_reason")
    return Counter({key: round(number) for key, number in counted.items()})


def entries(server: EmbeddedServer) -> list[dict[str, Any]]:
    """The log's lines about requests, found as an operator would."""
    lines = server.log().splitlines()
    return [json.loads(line) for line in lines if line.startswith('{"event": "chattts_request"')]


def ask(server: EmbeddedServer, index: int) -> tuple[str, str, list[Response]]:
    """Make one of many kinds of request; return mode, text and answers."""
    kind, seed = index % 9, index
    short: dict[str, Any] = {"text": TEXT, "seed": seed, "max_new_tokens": 8 + index % 30}
    malformed: list[dict[str, Any]] = [
        {"text": " "},
        {"text": TEXT, "temperature": 9.0},
        {"text": f"[Stts] {TEXT}"},
        {"text": TEXT, "voice": "nobody"},
        {"text": TEXT, "options": '{"no": 1}'},
    ]
    if kind in (0, 1):
        return "stream", TEXT, stream(server, **short)
    if kind == 2:
        return "unary", TEXT, stream(server, stream=False, **short)
    if kind == 3:
        ask_unary = unary_http if index % 18 == 3 else unary_grpc
        return "unary", TEXT, [ask_unary(server, **short)]
    if kind == 4:
        return "", "", stream(server, **malformed[index // 9 % len(malformed)])
    if kind == 5:
        return "stream", TEXT, stream(server, text=TEXT, deadline_ms=30 + index % 100, **LONG)
    if kind == 6:
        options = '{"retry_quality": true}'
        return "unary", TEXT, stream(server, stream=False, options=options, **short)
    if kind == 7:
        return "stream", TEXT, ask_and_stop(server, seed)
    return "stream", "☃", stream(server, text="☃")


def ask_and_stop(server: EmbeddedServer, seed: int) -> list[Response]:
    """Cancel a stream in the way of chattts_unary, so that all that was sent still arrives."""
    key, pieces = f"key {seed}", []
    with open_stream(server, {"stop_key": key}, text=TEXT, seed=seed, **LONG) as responses:
        pieces.append(next(responses))
        stream(server, {"stop": key}, text="")
        with pytest.raises(CallError, match="CANCELLED"):
            pieces.extend(responses)
    return pieces


def ask_and_count(server: EmbeddedServer, number: int) -> Tally:
    """Make requests from CALLERS threads."""

    def one(index: int) -> tuple[str, str, list[Response]] | str:
        try:
            return ask(server, index)
        except CallError as error:
            return error.code.removeprefix("StatusCode.")

    tally = Tally()
    with ThreadPoolExecutor(CALLERS) as threads:
        for answer in threads.map(one, range(number)):
            if not isinstance(answer, str):
                tally.add(*answer)
            else:
                names = {"INVALID_ARGUMENT": "INVALID_ARG", "400": "INVALID_ARG"}
                code = {**names, "503": "UNAVAILABLE"}.get(answer, answer)
                tally.ends[code, "none"] += 1
    return tally


def ask_for_something_else(server: EmbeddedServer) -> None:
    """What is no request for speech, and what Triton refuses before the model sees it."""
    for options in ('{"health": true}', '{"list_voices": true}', '{"dry_run": true}'):
        stream(server, text="hello", options=options)
    with suppress(CallError):
        unary_http(server, text=np.array([b"two", b"texts"], np.object_))


def test_counters_and_histograms_agree_with_what_the_clients_counted(
    server: EmbeddedServer, record_property: Callable[[str, object], None]
) -> None:
    tally = ask_and_count(server, REQUESTS)
    ask_for_something_else(server)
    record_property("ends", dict(tally.ends))
    assert {("OK", reason) for reason in ("length", "deadline", "none")} <= set(tally.ends)
    failures = ("INVALID_ARG", "UNAVAILABLE", "CANCELLED")
    assert {(code, "none") for code in failures} <= set(tally.ends)
    wait_until(lambda: ends(server).total() == REQUESTS)
    assert ends(server) == tally.ends
    num_good = sum(number for (code, _), number in tally.ends.items() if code == "OK")
    assert family(server, "tts_latency_seconds_count", "quant") == {("fp32",): num_good}
    assert value(server, "chattts_real_time_factor_count") == tally.pieces["whole"]
    assert family(server, "chattts_time_to_first_audio_seconds_count", "mode") == {
        (mode,): tally.pieces[f"first {mode}"] for mode in ("stream", "unary")
    }
    assert value(server, "chattts_chunk_gap_seconds_count") == tally.pieces["gaps"]
    assert value(server, "chattts_characters_total") == tally.num_characters
    seconds = value(server, "chattts_audio_seconds_total")
    assert math.isclose(seconds, tally.num_samples / 24000, rel_tol=1e-9)
    warnings = family(server, "chattts_warnings_total", "code")
    assert warnings == {(code,): number for code, number in tally.warnings.items()}
    assert warnings
    faults = family(server, "chattts_quality_total", "reason")
    assert faults == {(reason,): number for reason, number in tally.quality.items()}
    assert value(server, "chattts_running_requests") == 0

    # the log says the same, once each
    wait_until(lambda: len(entries(server)) == REQUESTS)
    logged = Counter(entry["code"] for entry in entries(server))
    assert logged == Counter(
        {
            code: sum(number for (other, _), number in tally.ends.items() if other == code)
            for code, _ in tally.ends
        }
    )


def test_who_comes_again_on_the_last_response_is_not_refused(server: EmbeddedServer) -> None:
    """As many callers as streams: its slot is free when a response says that it is the last."""

    before = ends(server)

    def come_again(caller: int) -> None:
        for seed in range(30):
            stream(server, text="hello", seed=seed, max_new_tokens=8, stream=bool(caller % 2))

    with ThreadPoolExecutor(MAX_STREAMS) as threads:
        list(threads.map(come_again, range(MAX_STREAMS)))
    wait_until(lambda: ends(server).total() == before.total() + 30 * MAX_STREAMS)
    assert ends(server)["UNAVAILABLE", "none"] == before["UNAVAILABLE", "none"]


def test_callers_who_leave_are_counted(server: EmbeddedServer) -> None:
    before = ends(server)
    first = value(server, "chattts_time_to_first_audio_seconds_count")
    latency = value(server, "tts_latency_seconds_count")

    def leave(seed: int) -> None:
        with open_stream(server, text=TEXT, seed=seed, **LONG) as responses:
            next(responses)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(leave, range(60)))
    wait_until(lambda: ends(server).total() == before.total() + 60)
    assert ends(server) - before == Counter({("CANCELLED", "none"): 60})
    assert value(server, "chattts_time_to_first_audio_seconds_count") == first + 60
    assert value(server, "tts_latency_seconds_count") == latency


def test_histograms_agree_with_the_client_s_clock(
    server: EmbeddedServer, record_property: Callable[[str, object], None]
) -> None:
    """First audio and latency within 5 %, in the middle of several.

    With `level` the first sound waits for the end of its segment, long enough for a comparison.
    """
    families = ("chattts_time_to_first_audio_seconds", "tts_latency_seconds")
    options = '{"level": true}'
    ratios: list[list[float]] = []
    for seed in range(5):
        before = [value(server, f"{name}_sum") for name in families]
        count = value(server, "tts_latency_seconds_count")
        started_at = time.perf_counter()
        with open_stream(server, text=TEXT, seed=seed, options=options, **STEADY) as responses:
            next(responses)
            seconds = [time.perf_counter() - started_at]
            assert list(responses)
            seconds.append(time.perf_counter() - started_at)
        wait_until(lambda count=count: value(server, "tts_latency_seconds_count") > count)
        shown = [value(server, f"{name}_sum") for name in families]
        ratios.append([s / (b - a) for s, a, b in zip(seconds, before, shown, strict=True)])
    record_property("client over histogram", ratios)
    for of_family in zip(*ratios, strict=True):
        assert 1.0 <= statistics.median(of_family) < 1.05, ratios


def test_the_log_knows_the_trace_and_says_how_long_it_took(server: EmbeddedServer) -> None:
    """Latency agrees with the clients' own clocks within 5 %, in the middle of several."""
    latencies: dict[str, float] = {}
    trace = "0af7651916cd43dd8448eb211c80319c"
    parameters = {"traceparent": f"00-{trace}-b7ad6b7169203331-01"}
    inputs = []
    for module in (tritonclient.grpc, tritonclient.http):
        text = module.InferInput("text", [1], "BYTES")
        text.set_data_from_numpy(np.array([TEXT.encode()], np.object_))
        steps = module.InferInput("max_new_tokens", [1], "INT32")
        steps.set_data_from_numpy(np.array([600], np.int32))
        fewest = module.InferInput("min_new_tokens", [1], "INT32")
        fewest.set_data_from_numpy(np.array([600], np.int32))
        inputs.append([text, steps, fewest])
    with (
        tritonclient.grpc.InferenceServerClient(server.grpc_url) as grpc,
        tritonclient.http.InferenceServerClient(server.http_url) as http,
    ):
        for index in range(6):
            client, tensors = ((grpc, inputs[0]), (http, inputs[1]))[index % 2]
            started_at = time.perf_counter()
            name = f"traced {index}"
            client.infer("chattts_unary", tensors, request_id=name, parameters=parameters)
            latencies[name] = time.perf_counter() - started_at
    wait_until(lambda: sum(entry["trace_id"] == trace for entry in entries(server)) == 6)
    logged = {entry["id"]: entry for entry in entries(server) if entry["trace_id"]}
    assert set(logged) == set(latencies)
    ratios = [latencies[name] / entry["latency_s"] for name, entry in logged.items()]
    assert 1.0 <= statistics.median(ratios) < 1.05, ratios
    (tokens,) = {entry["tokens"] for entry in logged.values()}
    assert tokens == 1200


def test_what_was_said_is_neither_in_the_log_nor_in_a_label(server: EmbeddedServer) -> None:
    assert entries(server)
    with urllib.request.urlopen(server.metrics_url, timeout=10) as response:
        shown = response.read().decode()
    for text in (server.log(), shown):
        assert SECRET not in text
        assert "☃" not in text
        assert "\\u2603" not in text


def test_what_is_exported_is_documented_and_the_other_way_round(server: EmbeddedServer) -> None:
    samples = {key.partition("{")[0] for key in read_metrics(server)}
    families = {re.sub("_(bucket|sum|count)$", "", name) for name in samples}
    ours = {name for name in families if name.startswith(("chattts_", "tts_"))}
    assert ours == names() - ONLY_ON_A_GPU


def test_the_small_voice_s_good_sentences_have_no_fault(demo_server: EmbeddedServer) -> None:
    mandarin = ["今天天气很好", "请问现在几点", "我们明天见"]
    spoken = [*((text, "en") for text in SENTENCES), *((text, "zh") for text in mandarin)]

    def faults(index: int) -> list[str]:
        text, voice = spoken[index]
        answer = stream(demo_server, text=text, voice=voice, seed=1, stream=False)
        found: list[str] = answer[-1].metadata["quality"]
        return found

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(faults, range(len(spoken))))
    assert found == [[]] * len(spoken)
