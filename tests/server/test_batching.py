"""Continuous batching, admission and cancellation of the token model, through the server."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as triton
from launcher import EmbeddedServer
from token_model import as_tensor, generate, generate_together, is_last, join, open_stream, read_all
from tritonclient.utils import InferenceServerException

LENGTHS = [60, 7, 33, 120, 18, 4, 90, 25, 51, 12, 75, 38, 9, 100, 22, 45]
PROMPT = "[Stts][empty_spk][speed_5]{}[Ptts]"
TEXTS = ["hello", "this is a test", "今天天气真好", "好"]

StartLimited = Callable[..., EmbeddedServer]


@pytest.fixture
def start_limited(
    tiny_repository: Path, tmp_path: Path, server_factory: Callable[[Path], EmbeddedServer]
) -> StartLimited:
    """Start a server with only the token model, some of its parameters changed."""

    def start(**limits: int) -> EmbeddedServer:
        shutil.copytree(tiny_repository / "chattts_gpt", tmp_path / "models" / "chattts_gpt")
        config = tmp_path / "models" / "chattts_gpt" / "config.pbtxt"
        text = config.read_text()
        for key, value in limits.items():
            pattern = rf'(key: "{key}" value: {{ string_value: )"\d+"'
            text, num_changed = re.subn(pattern, rf'\1"{value}"', text)
            assert num_changed == 1
        config.write_text(text)
        return server_factory(tmp_path / "models")

    return start


def request_of(number: int, steps: int) -> dict[str, Any]:
    return {
        "prompt": PROMPT.format(TEXTS[number % len(TEXTS)]),
        "seed": number,
        "min_new_tokens": steps,
        "max_new_tokens": steps,
    }


def test_sixteen_at_once_give_the_bits_of_one_by_one(tiny_server: EmbeddedServer) -> None:
    requests = [request_of(number, steps) for number, steps in enumerate(LENGTHS)]
    together = generate_together(tiny_server.grpc_url, requests)
    for inputs, result in zip(requests, together, strict=True):
        alone = generate(tiny_server.grpc_url, **inputs)
        np.testing.assert_array_equal(result.codes, alone.codes)
        np.testing.assert_array_equal(result.hidden, alone.hidden)
        assert result.finish_reason == "length"


def test_a_request_beside_sixty_three_others_gives_the_bits_of_one_alone(
    tiny_server: EmbeddedServer,
) -> None:
    requests = [request_of(number, 10 + number % 7) for number in range(64)]
    together = generate_together(tiny_server.grpc_url, requests)
    for number in (0, 31, 63):
        alone = generate(tiny_server.grpc_url, **requests[number])
        np.testing.assert_array_equal(together[number].codes, alone.codes)
        np.testing.assert_array_equal(together[number].hidden, alone.hidden)


def test_a_short_request_overtakes_a_long_one(tiny_server: EmbeddedServer) -> None:
    with open_stream(tiny_server.grpc_url) as stream:
        stream.send("long", **request_of(0, 2000), chunk_tokens=100)
        while stream.next_response().as_numpy("usage")[1] < 200:
            pass
        stream.send("short", **request_of(1, 10))
        seen = []
        while not seen or not is_last(seen[-1]) or seen[-1].get_response().id != "short":
            seen.append(stream.next_response())
        long_steps = max(
            (int(r.as_numpy("usage")[1]) for r in seen if r.get_response().id == "long"),
            default=200,
        )
        assert long_steps < 1000
        rest = read_all(stream.next_response)
    assert rest[-1].as_numpy("usage")[1] == 2000


def test_chunks_have_the_asked_sizes(tiny_server: EmbeddedServer) -> None:
    result = generate(
        tiny_server.grpc_url, **request_of(0, 50), first_chunk_tokens=4, chunk_tokens=20
    )
    assert result.chunk_sizes == [4, 20, 20, 6]


def test_a_running_request_is_stopped_by_its_id(tiny_server: EmbeddedServer) -> None:
    with open_stream(tiny_server.grpc_url) as stream:
        stream.send("run", **request_of(0, 2048), id="mine", chunk_tokens=8)
        responses = [stream.next_response()]
        stream.send("stop", cancel="mine")
        answer = None
        while not is_last(responses[-1]):
            response = stream.next_response()
            if response.get_response().id == "stop":
                answer = response
            else:
                responses.append(response)
        answer = answer or stream.next_response()
    stopped = join(responses)
    assert stopped.finish_reason == "cancelled"
    assert 8 <= len(stopped.codes) < 2048
    assert answer.as_numpy("usage").tolist() == [0, 0, 0, 0, 0]


def test_a_deadline_ends_a_request_with_what_it_has(tiny_server: EmbeddedServer) -> None:
    result = generate(tiny_server.grpc_url, **request_of(0, 2048), deadline_ms=60)
    assert result.finish_reason == "deadline"
    assert len(result.codes) < 2048


def test_a_dropped_stream_frees_its_slot(start_limited: StartLimited) -> None:
    """With one slot and no queue, the next request is taken only if the dropped one is gone."""
    server = start_limited(max_num_seqs=1, max_num_waiting=0)
    client = triton.InferenceServerClient(server.grpc_url)
    client.start_stream(lambda result, error: None)
    inputs = request_of(0, 2048)
    client.async_stream_infer("chattts_gpt", [as_tensor(n, v) for n, v in inputs.items()])
    wait_until(lambda: is_refused(server.grpc_url))
    client.stop_stream(cancel_requests=True)
    wait_until(lambda: not is_refused(server.grpc_url))


def test_one_request_too_many_is_unavailable_at_once(start_limited: StartLimited) -> None:
    """Requests of one stream arrive in order, so the fourth finds one running and two waiting."""
    server = start_limited(max_num_seqs=1, max_num_waiting=2)
    with open_stream(server.grpc_url) as stream:
        for number in range(4):
            stream.send(str(number), **request_of(number, 1500), chunk_tokens=2000)
        with pytest.raises(InferenceServerException, match="UNAVAILABLE: 2 requests are waiting"):
            stream.next_response()
        finished = [stream.next_response() for _ in range(3)]
    assert [response.get_response().id for response in finished] == ["0", "1", "2"]
    assert all(is_last(response) for response in finished)


def is_refused(url: str) -> bool:
    try:
        generate(url, **request_of(1, 1))
    except InferenceServerException as error:
        return "UNAVAILABLE" in str(error)
    return False


def wait_until(condition: Any) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
