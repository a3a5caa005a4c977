"""The evaluation of a voice asks a real server, and hears what comes."""

from __future__ import annotations

import pytest
from launcher import EmbeddedServer

pytest.importorskip("torch")

from ear import SENTENCES, demo_ear
from train_voice.speaking import ServerSpeaker


def test_a_server_is_heard(demo_server: EmbeddedServer) -> None:
    said = ServerSpeaker(f"http://{demo_server.http_url}", ["en"]).say(SENTENCES[:2], "en")
    assert all(each.has_ended for each in said)
    ear = demo_ear()
    heard = [ear.hear(each.samples) for each in said]
    assert ear.score(zip(SENTENCES, heard, strict=False)).accuracy >= 0.8
