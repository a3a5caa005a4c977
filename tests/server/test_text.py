"""The text front end on the real server: what a dry run tells is what is said."""

from __future__ import annotations

import json
from typing import Any

import pytest
from chattts_client import ChatTTSClient, InvalidRequestError, SpeechOptions
from chattts_text.offline import prepare
from launcher import EmbeddedServer

TEXT = "Tickets cost $4.50 at 3:20. 温度是-5℃，湿度45%。 ☃ [laugh] 她重新买了2个。"
STEPS: SpeechOptions = {"seed": 1, "max_new_tokens": 40}


def test_a_dry_run_tells_what_is_spoken(tiny_server: EmbeddedServer) -> None:
    with ChatTTSClient(tiny_server.grpc_url) as client:
        told = client.normalize(TEXT)
        audio = client.synthesize(TEXT, **STEPS)
    assert audio.text_segments == tuple(segment.text.strip() for segment in told.segments)
    assert [one for one in audio.warnings if one.start is not None] == list(told.warnings)
    assert "".join(span.text for span in told.alignment) == TEXT
    assert not any(character.isdigit() for character in told.spoken)
    (dropped,) = [one for one in told.warnings if one.code == "dropped_symbol"]
    assert TEXT[dropped.start : dropped.end] == dropped.text == "☃"


def test_a_dry_run_works_over_http_and_costs_no_step(tiny_server: EmbeddedServer) -> None:
    with (
        ChatTTSClient(tiny_server.grpc_url) as over_grpc,
        ChatTTSClient(tiny_server.http_url, transport="http") as over_http,
    ):
        assert over_http.normalize(TEXT) == over_grpc.normalize(TEXT)


def test_the_same_is_told_without_a_server(tiny_server: EmbeddedServer) -> None:
    text = "It is 5 o'clock on May 5, 2024. See you at 7."
    with ChatTTSClient(tiny_server.grpc_url) as client:
        told = client.normalize(text)
    offline = prepare(text)
    assert offline.spoken == told.spoken
    assert [one.text for one in offline.segments] == [one.text for one in told.segments]


@pytest.mark.parametrize(
    ("options", "spoken"),
    [
        ({}, "see S Q L and [uv_break] two."),
        ({"lexicon": {"SQL": "sequel"}}, "see sequel and [uv_break] two."),
        ({"stages": {"normalize": False}}, "see SQL and [uv_break] 2."),
        ({"normalize": False}, "see SQL and [uv_break] 2."),
    ],
)
def test_switches_are_per_request(
    tiny_server: EmbeddedServer, options: dict[str, Any], spoken: str
) -> None:
    with ChatTTSClient(tiny_server.grpc_url) as client:
        told = client.normalize("see SQL and [uv_break] 2.", options=options)
    assert told.spoken == spoken


def test_what_is_not_allowed_is_an_error_that_names_the_field(tiny_server: EmbeddedServer) -> None:
    with ChatTTSClient(tiny_server.grpc_url) as client:
        for text, options in (
            ("<speak>a<audio src='x'/></speak>", {}),
            ("a [Stts] b", {}),
            ("שלום", {"on_unsupported": "error"}),
        ):
            with pytest.raises(InvalidRequestError) as caught:
                client.normalize(text, options=options)
            assert caught.value.field == "text", json.dumps(text)
