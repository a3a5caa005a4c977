"""Versions in a running server: published and rolled back under streams, refused, named."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import onnx
import pytest
import release
import repository as layout
import stamp
from chattts_client import Audio, ChatTTSClient, InvalidRequestError, SpeechOptions
from conftest import ROOT, TINY_CHECKPOINT
from launcher import EmbeddedServer, EmbeddedServerError
from metrics import read_metrics
from onnx import numpy_helper
from repository import MODELS
from safetensors.numpy import load_file, save_file
from throw_away import wait_until

TEXT = "hello world. " * 6
LONG: SpeechOptions = {"min_new_tokens": 300, "max_new_tokens": 300}
SHORT: SpeechOptions = {"min_new_tokens": 4, "max_new_tokens": 4}
SEEDS = (1, 2)
NUM_STREAMS = 8
NUM_UNARY = 6
"""More than chattts_unary has instances, so that some wait in Triton's own queue."""
WAIT_S = 120.0

ServerFactory = Callable[..., EmbeddedServer]


def run_build(script: str, *arguments: object) -> None:
    command = [sys.executable, str(ROOT / "build" / script), *map(str, arguments)]
    subprocess.run(command, check=True, capture_output=True)


@pytest.fixture(scope="module")
def two_versions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Version 1, which is served, has the golden weights, version 2 others."""
    folder = tmp_path_factory.mktemp("two-versions")
    other, repository = folder / "other", folder / "repository"
    run_build("make_checkpoint.py", "--size", "tiny", "--seed", 5, "--output", other)
    run_build("build_repository.py", "--checkpoint", TINY_CHECKPOINT, "--output", repository)
    run_build("build_repository.py", "--checkpoint", other, "--output", repository, "--version", 2)
    return repository


@pytest.fixture
def repository(two_versions: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(two_versions, tmp_path / "repository"))


def released(server: EmbeddedServer, *arguments: str, token_file: Path | None = None) -> int:
    """Run build/release.py against a server; return its exit status."""
    metrics = server.metrics_url.removeprefix("http://").removesuffix("/metrics")
    return release.main(
        [
            *arguments,
            f"--repository={server.model_repository}",
            f"--http={server.http_url}",
            f"--metrics={metrics}",
            f"--token-file={token_file or server.control_token_file}",
        ]
    )


def served(repository: Path) -> list[list[int]]:
    return [layout.served(repository, model) for model in MODELS]


def shown(server: EmbeddedServer, version: str) -> dict[str, float]:
    """What says that a version is there, by its family."""
    families = (
        "chattts_info",
        "chattts_front_resident_memory_bytes",
        "chattts_engine_resident_memory_bytes",
        "chattts_kv_blocks_total",
    )
    return {
        family: sum(
            value
            for name, value in read_metrics(server).items()
            if name.startswith(f"{family}{{") and f'version="{version}"' in name
        )
        for family in families
    }


def num_running(server: EmbeddedServer, version: str) -> float:
    return read_metrics(server)[f'chattts_running_requests{{version="{version}"}}']


def assert_same(audio: Audio, reference: Audio, version: str) -> None:
    np.testing.assert_array_equal(audio.samples, reference.samples)
    assert audio.model_version == version


class Newcomers:
    """A thread that asks for one short speech after the other, naming no version."""

    def __init__(self, client: ChatTTSClient) -> None:
        self.versions: list[str] = []
        self._client = client
        self._is_over = threading.Event()
        self._thread = ThreadPoolExecutor(1)
        self._run: Future[None] = self._thread.submit(self._ask)

    def _ask(self) -> None:
        while not self._is_over.is_set():
            self.versions.append(self._client.synthesize("hello", **SHORT).model_version)

    def finish(self) -> list[str]:
        """Stop; return the versions that answered, raise what failed."""
        self._is_over.set()
        self._run.result(WAIT_S)
        self._thread.shutdown()
        return self.versions


@contextmanager
def newcomers(client: ChatTTSClient) -> Iterator[Newcomers]:
    caller = Newcomers(client)
    yield caller
    caller.finish()


def test_streams_live_through_publish_and_rollback(
    repository: Path, server_factory: ServerFactory
) -> None:
    server = server_factory(repository)
    with (
        ThreadPoolExecutor(NUM_STREAMS + NUM_UNARY) as threads,
        ChatTTSClient(server.grpc_url, timeout_s=WAIT_S, max_retries=0) as client,
        ChatTTSClient(server.http_url, transport="http", timeout_s=WAIT_S, max_retries=0) as http,
    ):

        def speak(number: int) -> Audio:
            asked = client if number < NUM_STREAMS else http
            return asked.synthesize(TEXT, seed=SEEDS[number % len(SEEDS)], **LONG)

        for arguments, old, new in ((("publish", "2"), "1", "2"), (("rollback",), "2", "1")):
            references = list(threads.map(speak, range(len(SEEDS))))
            speeches = [threads.submit(speak, n) for n in range(NUM_STREAMS + NUM_UNARY)]
            wait_until(
                lambda version=old: num_running(server, version) > NUM_STREAMS,  # type: ignore[misc]
                "streams and unary requests run",
            )
            with newcomers(client) as caller:
                assert released(server, *arguments) == 0
            for number, speech in enumerate(speeches):
                assert_same(speech.result(WAIT_S), references[number % len(SEEDS)], old)
            versions = caller.versions
            num_old = versions.count(old)
            assert versions == [old] * num_old + [new] * (len(versions) - num_old)
            assert 0 < num_old < len(versions)
            assert served(repository) == [[int(new)]] * len(MODELS)
            assert not any(shown(server, old).values())
            assert all(shown(server, new).values())
            assert shown(server, new)["chattts_info"] == 1
            with pytest.raises(InvalidRequestError, match=f"{old} is not served"):
                client.synthesize("hello", model_version=old, **SHORT)
        assert server.is_healthy()


def test_a_request_names_one_of_two_versions_also_after_a_restart(
    repository: Path, server_factory: ServerFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    server = server_factory(repository)
    assert released(server, "publish", "2", "--keep", token_file=Path(os.devnull)) == 1
    assert "refuses: it asks for its secret" in capsys.readouterr().err
    assert released(server, "publish", "2", "--keep") == 0
    for running in (server, server_factory(repository)):
        with (
            ChatTTSClient(running.grpc_url) as client,
            ChatTTSClient(running.http_url, transport="http") as http,
        ):
            for asked in (client, http):
                audios = {
                    version: asked.synthesize("hello", seed=1, model_version=version, **SHORT)
                    for version in ("1", "2")
                }
                assert [audio.model_version for audio in audios.values()] == ["1", "2"]
                assert not np.array_equal(audios["1"].samples, audios["2"].samples)
                assert asked.synthesize("hello", **SHORT).model_version == "2"
                with pytest.raises(InvalidRequestError, match="7 is not served") as caught:
                    asked.synthesize("hello", model_version="7")
                assert caught.value.field == "model_version"
    capsys.readouterr()
    assert released(running, "status", "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["version"], row["served"]) for row in rows] == [(1, True), (2, True)]
    assert [row["models"] for row in rows] == [dict.fromkeys(MODELS, "READY")] * 2


def not_finite_vocoder(repository: Path) -> None:
    path = repository / layout.vocoder_file(3)
    model = onnx.load(path)
    weights = [tensor for tensor in model.graph.initializer if tensor.data_type == 1]
    largest = max(weights, key=lambda tensor: numpy_helper.to_array(tensor).size)
    array = np.full_like(numpy_helper.to_array(largest), np.nan)
    largest.CopyFrom(numpy_helper.from_array(array, largest.name))
    onnx.save(model, path)


def not_finite_token_model(repository: Path) -> None:
    path = repository / layout.gpt_weights(3) / "embeddings.safetensors"
    tables = load_file(path)
    save_file({name: np.full_like(table, np.nan) for name, table in tables.items()}, path)


def half_a_graph(repository: Path) -> None:
    path = repository / layout.vocoder_file(3)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def broken_front(repository: Path) -> None:
    (repository / "chattts" / "3" / "model.py").write_text("raise RuntimeError('broken release')\n")


def broken_unary(repository: Path) -> None:
    (repository / "chattts_unary" / "3" / "model.py").write_text("class TritonPythonModel\n")


BROKEN: dict[Callable[[Path], None], str] = {
    not_finite_token_model: "chattts_gpt",
    half_a_graph: "chattts_vocoder",
    not_finite_vocoder: "samples are not finite numbers",
    broken_front: "broken release",
    broken_unary: "SyntaxError",
}


def write_broken(repository: Path, damage: Callable[[Path], None], source: int) -> None:
    """Make version 3 from another one; its stamp says that it is complete all the same."""
    for model in MODELS:
        shutil.rmtree(repository / model / "3", ignore_errors=True)
        shutil.copytree(repository / model / str(source), repository / model / "3")
    damage(repository)
    record = stamp.read_stamp(repository, source)
    names = [name.replace(f"/{source}/", "/3/") for name in record["outputs"]]
    stamp.write_stamp(repository, 3, record["inputs"], names)


def test_a_version_that_cannot_speak_is_refused_and_nobody_notices(
    repository: Path, server_factory: ServerFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    server = server_factory(repository)
    with ThreadPoolExecutor(1) as thread, ChatTTSClient(server.grpc_url, max_retries=0) as client:
        reference = client.synthesize(TEXT, seed=1, **LONG)
        for damage, reason in BROKEN.items():
            write_broken(repository, damage, source=2)
            speech = thread.submit(client.synthesize, TEXT, seed=1, **LONG)
            with newcomers(client):
                assert released(server, "publish", "3") == 1
            message = capsys.readouterr().err
            assert "version 3 is refused, 1 is served as before" in message
            assert reason in message
            assert_same(speech.result(WAIT_S), reference, "1")
            assert served(repository) == [[1]] * len(MODELS)
            assert server.is_ready()
            assert server.is_healthy()
            assert client.synthesize("hello", **SHORT).model_version == "1"
        assert released(server, "publish", "2") == 0


def test_a_server_whose_first_speech_fails_does_not_start(
    repository: Path, server_factory: ServerFactory
) -> None:
    write_broken(repository, not_finite_vocoder, source=1)
    for model in MODELS:
        layout.serve(repository, model, [3])
    with pytest.raises(EmbeddedServerError, match=r"warm-up failed: .* not finite numbers"):
        server_factory(repository)


def test_a_stream_that_outlives_the_limit_is_not_cut_and_the_command_goes_on(
    repository: Path, server_factory: ServerFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    server = server_factory(repository)
    with ThreadPoolExecutor(1) as thread, ChatTTSClient(server.grpc_url, max_retries=0) as client:
        reference = client.synthesize("hello world. ", seed=1, **LONG)  # the first segment
        long_text = TEXT * 8
        speech = thread.submit(client.synthesize, long_text, seed=1, **LONG)
        wait_until(lambda: num_running(server, "1") > 0, "the stream runs")
        assert released(server, "publish", "2", "--drain-limit=0") == 1
        assert "still works after 0 s" in capsys.readouterr().err
        assert client.synthesize("hello", **SHORT).model_version == "2"
        assert released(server, "publish", "2") == 0
        audio = speech.result(WAIT_S)
    assert audio.model_version == "1"
    first = len(reference.samples)
    np.testing.assert_array_equal(audio.samples[:first], reference.samples)
    assert served(repository) == [[2]] * len(MODELS)
