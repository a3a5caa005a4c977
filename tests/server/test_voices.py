"""Voices of a running server: files that come, change, break and go; many callers; a release."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import release
import repository as layout
from chattts_client import Audio, ChatTTSClient, InvalidRequestError, SpeechOptions
from chattts_voices import digest
from chattts_voices.strings import encode_speaker
from launcher import EmbeddedServer
from metrics import read_metrics
from speech_calls import stream
from throw_away import wait_until
from voice_samples import HIDDEN, prompt_voice, voice, write

TEXT = "hello world."
SHORT: SpeechOptions = {"min_new_tokens": 4, "max_new_tokens": 4, "seed": 1}
NUM_CALLERS = 50
OTHER = np.linspace(-4, 4, HIDDEN).astype(np.float16)
WAIT_S = 120.0

ServerFactory = Callable[..., EmbeddedServer]


def other_voice(name: str, **changes: Any) -> dict[str, Any]:
    return voice(name, speaker=encode_speaker(OTHER), sha256=digest(OTHER), **changes)


@pytest.fixture
def repository(tiny_repository: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_repository, tmp_path / "repository"))


@pytest.fixture
def folder(repository: Path) -> Path:
    return repository / layout.front_voices(1)


def test_files_that_come_change_break_and_go_are_seen_by_the_next_request(
    repository: Path, folder: Path, server_factory: ServerFactory
) -> None:
    server = server_factory(repository)
    with ChatTTSClient(server.grpc_url, timeout_s=WAIT_S) as client:

        def speak(name: str) -> Audio:
            return client.synthesize(TEXT, voice=name, **SHORT)

        path = write(folder, voice("anna", aliases=["alloy"]))
        first = speak("anna")
        aliased = speak("alloy")
        assert first.voice == aliased.voice == "anna"
        np.testing.assert_array_equal(aliased.samples, first.samples)

        path.write_text("{", encoding="utf-8")
        np.testing.assert_array_equal(speak("anna").samples, first.samples)
        (answer,) = stream(server, text="", options='{"list_voices": true}')
        (error,) = answer.metadata["errors"]
        assert error["file"] == "anna.json"
        assert [entry["name"] for entry in answer.metadata["voices"]] == ["anna"]
        assert "anna.json: not UTF-8 JSON" in server.log()

        write(folder, other_voice("anna"))
        assert not np.array_equal(speak("anna").samples, first.samples)
        write(folder, prompt_voice("bo"))
        assert speak("bo").voice == "bo"
        assert [entry.kind for entry in client.voices()] == ["speaker", "audio_prompt"]

        path.unlink()
        with pytest.raises(InvalidRequestError, match="voice: 'anna' is unknown; allowed: "):
            speak("anna")


def test_fifty_first_requests_of_a_new_voice_hear_the_same_person(
    repository: Path, folder: Path, server_factory: ServerFactory
) -> None:
    server = server_factory(repository)
    with (
        ChatTTSClient(server.grpc_url, timeout_s=WAIT_S) as client,
        ThreadPoolExecutor(NUM_CALLERS) as threads,
    ):
        write(folder, other_voice("anna"))
        calls = [
            threads.submit(client.synthesize, TEXT, voice="anna", **SHORT)
            for _ in range(NUM_CALLERS)
        ]
        spoken = [call.result() for call in calls]
    assert {audio.voice for audio in spoken} == {"anna"}
    for audio in spoken:
        np.testing.assert_array_equal(audio.samples, spoken[0].samples)


def test_a_server_starts_without_a_broken_voice_or_lexicon_and_names_file_and_field(
    repository: Path, folder: Path, server_factory: ServerFactory
) -> None:
    write(folder, voice("anna", sha256="0" * 64))
    (folder.parent / "lexicon.json").write_text("[1]")
    server = server_factory(repository)
    assert "anna.json: sha256: " in server.log()
    assert "lexicon.json: " in server.log()
    with ChatTTSClient(server.grpc_url) as client:
        assert client.synthesize("hello", max_new_tokens=30).finish_reasons == ("length",)
        with pytest.raises(InvalidRequestError, match="its file is broken: sha256"):
            client.synthesize("hello", voice="anna")


def test_a_release_after_a_voice_came_cuts_no_speech_off(
    repository: Path, folder: Path, server_factory: ServerFactory
) -> None:
    """Triton takes the version for a changed one and loads its front anew beside the other."""
    for model in layout.MODELS:
        shutil.copytree(repository / model / "1", repository / model / "2")
    stamp = repository / layout.stamp_file(2)
    stamp.write_text(stamp.read_text().replace("/1/", "/2/"))
    server = server_factory(repository)
    long: SpeechOptions = {"min_new_tokens": 1500, "max_new_tokens": 1500, "seed": 1}
    write(folder, voice("anna"))
    metrics = server.metrics_url.removeprefix("http://").removesuffix("/metrics")
    command = ["publish", "2", f"--repository={repository}", f"--http={server.http_url}"]
    command.append(f"--metrics={metrics}")
    with (
        ChatTTSClient(server.grpc_url, timeout_s=WAIT_S) as client,
        ThreadPoolExecutor() as threads,
    ):
        speech = threads.submit(client.synthesize, TEXT * 60, voice="anna", **long)
        wait_until(lambda: running(server) > 0, "it speaks")
        command += [f"--token-file={server.control_token_file}"]
        publish = threads.submit(release.main, command)
        wait_until(lambda: layout.served(repository, layout.FRONT) != [1], "the front is loaded")
        assert running(server) > 0
        spoken = speech.result()
        assert publish.result() == 0
        assert (spoken.model_version, set(spoken.finish_reasons)) == ("1", {"length"})
        with pytest.raises(InvalidRequestError, match="voice: 'anna' is unknown"):
            client.synthesize(TEXT, voice="anna", **SHORT)


def running(server: EmbeddedServer) -> float:
    return read_metrics(server)['chattts_running_requests{version="1"}']
