"""The cache of utterances: equal bits for the same question, and never more than its size."""

from __future__ import annotations

import logging
import multiprocessing
import os
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chattts_client import (
    Audio,
    ChatTTSClient,
    SpeechWarning,
    Summary,
    Timings,
    UtteranceCache,
)
from chattts_client._cache import key_of
from chattts_client._protocol import speech_request


def audio_of(samples: np.ndarray[Any, np.dtype[np.float32]], **facts: Any) -> Audio:
    warning = SpeechWarning("dropped", "left out: ☃", start=3, end=4, text="☃")
    summary: dict[str, Any] = {
        "request_id": "r1",
        "seed": 2**64 - 1,
        "voice": "小红",
        "finish_reasons": ("eos", "length"),
        "warnings": (warning, SpeechWarning("untrained", "noise")),
        "timings": Timings(queue_ms=1.5, first_audio_ms=None, total_ms=3.0, audio_s=0.5),
        "text_segments": ("one\n", "two"),
        "model_version": "1",
        "checkpoint": "demo",
        "precision": "int8",
        "latency": "exact",
        "untrained": True,
        "quality": ("clipped",),
    }
    return Audio(
        **{**summary, **facts},
        samples=samples,
        sample_rate=24_000,
        time_to_first_audio_s=0.1,
        elapsed_s=0.2,
    )


def noise(count: int, seed: int = 0) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.random.default_rng(seed).standard_normal(count).astype(np.float32)


def files(cache: UtteranceCache) -> list[Path]:
    return sorted(cache.folder.iterdir())


def total_bytes(cache: UtteranceCache) -> int:
    return sum(path.stat().st_size for path in cache.folder.iterdir())


def test_an_utterance_comes_back_with_the_same_bits_and_facts(tmp_path: Path) -> None:
    cache = UtteranceCache(tmp_path / "new" / "folder")
    samples = noise(1000)
    samples[:3] = [np.nan, -0.0, np.inf]
    audio = audio_of(samples)
    cache.store("key", audio)
    chunk = cache.load("key")
    assert chunk is not None
    assert chunk.samples.tobytes() == samples.tobytes()
    assert chunk.samples.dtype == np.float32
    assert not chunk.samples.flags.writeable
    assert (chunk.is_final, chunk.sample_rate, chunk.num_segments) == (True, 24_000, 2)
    assert chunk.summary == Summary(
        **{name: getattr(audio, name) for name in Summary.__dataclass_fields__}
    )


@pytest.mark.parametrize(
    "facts",
    [{"finish_reasons": ("eos", "deadline")}, {"finish_reasons": ("cancelled",)}],
)
def test_what_ended_early_is_not_kept(tmp_path: Path, facts: dict[str, Any]) -> None:
    cache = UtteranceCache(tmp_path)
    cache.store("key", audio_of(noise(10), **facts))
    cache.store("key", audio_of(noise(0), finish_reasons=()))
    assert not files(cache)


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "short": lambda content: content[:-1],
    "long": lambda content: content + b"\0",
    "one bit": lambda content: content[:-9] + bytes([content[-9] ^ 1]) + content[-8:],
    "head": lambda content: content.replace(b"demo", b"domo"),
    "another format": lambda content: b"RIFF" + content,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_a_miss_and_removed(
    tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    cache = UtteranceCache(tmp_path)
    cache.store("key", audio_of(noise(100)))
    (path,) = files(cache)
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    assert cache.load("key") is None
    assert not files(cache)
    assert "damaged" in caplog.text


def test_a_file_under_another_name_is_a_miss(tmp_path: Path) -> None:
    cache = UtteranceCache(tmp_path)
    cache.store("one", audio_of(noise(100)))
    (path,) = files(cache)
    path.rename(path.with_name(path.name.replace("one", "two")))
    assert cache.load("two") is None


def test_the_folder_keeps_its_size_and_the_last_used(tmp_path: Path) -> None:
    cache = UtteranceCache(tmp_path, max_bytes=100_000)
    for index in range(40):
        cache.store(f"key{index}", audio_of(noise(2000, index)))  # 8 kB each
        os.utime(tmp_path / f"key{index}.utterance", (index, index))
        assert total_bytes(cache) <= 100_000
        if index >= 2:
            assert cache.load("key2") is not None  # used all the time, so it stays
    kept = {path.stem for path in files(cache)}
    assert {"key2", "key39", "key38"} <= kept
    assert "key3" not in kept
    assert len(kept) >= 9


def test_one_that_fills_all_is_not_kept_and_costs_no_other(tmp_path: Path) -> None:
    cache = UtteranceCache(tmp_path, max_bytes=50_000)
    cache.store("small", audio_of(noise(100)))
    cache.store("large", audio_of(noise(12_000)))
    assert [path.stem for path in files(cache)] == ["small"]


def test_files_of_dead_processes_go_and_others_stay(tmp_path: Path) -> None:
    cache = UtteranceCache(tmp_path)
    for name in (".old.partial", ".new.partial", "notes.txt"):
        (tmp_path / name).touch()
    os.utime(tmp_path / ".old.partial", (1, 1))
    os.utime(tmp_path / "notes.txt", (1, 1))
    cache.store("key", audio_of(noise(10)))
    assert [path.name for path in files(cache)] == [".new.partial", "key.utterance", "notes.txt"]


def test_a_folder_that_fails_costs_no_utterance(
    tmp_path: Path, grpc_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    cache = UtteranceCache(tmp_path / "folder")
    cache.folder.rmdir()
    cache.folder.touch()
    with ChatTTSClient(grpc_url, cache=cache) as client, caplog.at_level(logging.WARNING):
        assert len(client.synthesize("hello").samples) == 3 * 256
    assert "an utterance was not kept" in caplog.text


def test_a_folder_that_was_removed_is_made_again(tmp_path: Path) -> None:
    cache = UtteranceCache(tmp_path / "a" / "folder")
    shutil.rmtree(tmp_path / "a")
    cache.store("key", audio_of(noise(10)))
    assert cache.load("key") is not None


def test_no_folder_is_not_the_current_one() -> None:
    with pytest.raises(ValueError, match="^folder: is empty"):
        UtteranceCache("")


@pytest.mark.parametrize(
    ("field", "arguments"),
    [
        ("use", {"use": "always"}),
        ("max_bytes", {"max_bytes": 0}),
        ("max_bytes", {"max_bytes": "1"}),
    ],
)
def test_a_wrong_argument_is_named(tmp_path: Path, field: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"^{field}: "):
        UtteranceCache(tmp_path / "folder", **arguments)
    assert not (tmp_path / "folder").exists()


def key(text: str = "hello", *, stream: bool = False, **options: Any) -> str:
    return key_of(speech_request(text, options, stream=stream))


def test_the_key_is_the_question_and_nothing_else() -> None:
    assert key() == key(stream=True) == key(voice=None)
    assert key(temperature=0.3) == key(temperature=np.float32(0.3))
    assert key(options={"a": 1, "b": 2}) == key(options={"b": 2, "a": 1})
    different = [
        key(),
        key("hallo"),
        key(voice="en"),
        key(style="en"),
        key(seed=0),
        key(seed=1),
        key(seed=2**64 - 1),
        key(temperature=0.3),
        key(refine=True),
        key(model_version="1"),
        key(options={"split": False}),
        key(options={"split": 0}),
    ]
    assert len(set(different)) == len(different)


def write_and_read(folder: Path, worker: int) -> int:
    """Store and load under shared keys; the number of hits whose samples are not their key's."""
    cache = UtteranceCache(folder, max_bytes=60_000)
    wrong = 0
    for step in range(150):
        key = (step * 7 + worker) % 12
        cache.store(f"key{key}", audio_of(noise(1500, key)))
        chunk = cache.load(f"key{(key + 5) % 12}")
        expected = noise(1500, (key + 5) % 12)
        wrong += chunk is not None and chunk.samples.tobytes() != expected.tobytes()
    return wrong


def test_several_processes_share_a_folder(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        wrong = pool.starmap(write_and_read, [(tmp_path, worker) for worker in range(3)])
    assert wrong == [0, 0, 0]
    assert not list(tmp_path.glob("*.partial"))
    assert total_bytes(UtteranceCache(tmp_path)) <= 60_000 * 1.3


def test_several_threads_share_a_cache(tmp_path: Path) -> None:
    cache = UtteranceCache(tmp_path, max_bytes=60_000)
    problems: list[str] = []

    def work(worker: int) -> None:
        for step in range(60):
            name = f"key{(step + worker) % 12}"
            cache.store(name, audio_of(noise(1500)))
            cache.load(name)
            if total_bytes_now(tmp_path) > 60_000 + 4 * 6200:
                problems.append("too large")

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    assert total_bytes(cache) <= 60_000


def total_bytes_now(folder: Path) -> int:
    """Bytes of finished files, while others come and go."""
    total = 0
    for entry in os.scandir(folder):
        if entry.name.endswith(".utterance"):
            try:
                total += entry.stat().st_size
            except FileNotFoundError:
                continue
    return total


def test_a_hit_counts_as_use(tmp_path: Path) -> None:
    cache = UtteranceCache(tmp_path)
    cache.store("key", audio_of(noise(24_000)))
    os.utime(tmp_path / "key.utterance", (1, 1))
    cache.load("key")
    assert time.time() - (tmp_path / "key.utterance").stat().st_mtime < 3600
