"""The evaluation of a voice asks a real server, and hears what comes."""

from __future__ import annotations

import pytest
from launcher import EmbeddedServer

pytest.importorskip("torch")

import ear
from train_voice.speaking import ServerSpeaker

TEXTS = (
    "the train from berlin arrives at half past five",
    "we will meet at half past twelve on sunday",
)


def test_a_server_is_heard(demo_server: EmbeddedServer) -> None:
    said = ServerSpeaker(f"http://{demo_server.http_url}").say(TEXTS, "en")
    assert all(each.has_ended for each in said)
    listener = ear.Ear()
    heard = [
        (text, listener.hear(each.samples, 24_000)) for text, each in zip(TEXTS, said, strict=True)
    ]
    assert listener.score(heard).word_accuracy >= 0.8
