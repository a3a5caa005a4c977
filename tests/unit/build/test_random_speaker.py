"""A seed's speaker vector: the same numbers everywhere, from the statistics given."""

from __future__ import annotations

import itertools
import struct
from pathlib import Path

import numpy as np
import pytest
from random_speaker import Statistics, draw_speaker, normals, read_statistics
from voice_copies import SHIPPED
from voice_format import digest, encode_base16384, parse_voice

STD = [0.5, 2.0, 15.71, 1.0]
MEAN = [0.0, -8.83, 8.92, 0.25]
GOLDEN_0 = [
    1.5158333988063457,
    -0.743960925053736,
    -0.22942658996075285,
    0.255251064270454,
    -0.0914685784854462,
    -0.7813732236579919,
]
GOLDEN_LAST = [-0.5704775278813728, -0.6048917832618366]
GOLDEN_DIGEST = "5bd86726d1540d1c362337a9e02856045d3cbb463a2427fdd4e34959a3a1e0a6"
RAW = struct.pack("<8e", *STD, *MEAN)


def take(seed: int, count: int) -> list[float]:
    return list(itertools.islice(normals(seed), count))


def test_the_algorithm_gives_these_numbers_for_ever() -> None:
    assert take(0, 6) == pytest.approx(GOLDEN_0, rel=0, abs=1e-14)
    assert take(2**64 - 1, 2) == pytest.approx(GOLDEN_LAST, rel=0, abs=1e-14)
    statistics = Statistics((2.0,) * 768, (0.5,) * 768, "")
    assert digest(draw_speaker(statistics, 7)) == GOLDEN_DIGEST


def test_the_numbers_are_standard_normal() -> None:
    numbers = np.array(take(5, 100_000))
    # five standard errors of mean, variance and fourth moment
    assert abs(numbers.mean()) < 5 / 100_000**0.5
    assert abs(numbers.var() - 1) < 5 * (2 / 100_000) ** 0.5
    assert abs((numbers**4).mean() - 3) < 5 * (96 / 100_000) ** 0.5
    assert abs(np.corrcoef(numbers[::2], numbers[1::2])[0, 1]) < 5 / 50_000**0.5


def test_seeds_differ() -> None:
    assert len({take(seed, 1)[0] for seed in range(1000)}) == 1000


@pytest.mark.parametrize("content", [RAW, encode_base16384(RAW).encode() + b"\n"])
def test_statistics_are_bytes_or_their_string(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "stats"
    path.write_bytes(content)
    statistics = read_statistics(path)
    np.testing.assert_array_equal(statistics.std, np.array(STD, np.float16))
    np.testing.assert_array_equal(statistics.mean, np.array(MEAN, np.float16))
    assert not statistics.is_published
    speaker = draw_speaker(statistics, 3)
    values = [
        z * s + m for z, s, m in zip(take(3, 4), statistics.std, statistics.mean, strict=True)
    ]
    np.testing.assert_array_equal(speaker, np.array(values).astype(np.float16))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "0 bytes"),
        (RAW[:-2], "14 bytes"),
        (struct.pack("<2e", 0.0, 1.0), "no statistics"),
        (struct.pack("<2e", float("inf"), 1.0), "no statistics"),
    ],
)
def test_what_is_no_statistics_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "stats"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_statistics(path)


def test_the_voices_that_ship_are_six_of_published_size_nobody_has_heard() -> None:
    files = sorted(SHIPPED.glob("*.json"))
    assert len(files) == 6
    for path in files:
        found = parse_voice(path.read_bytes(), path.stem, 768)
        assert found.voice.speaker_embedding is not None
        provenance = found.facts["provenance"]
        assert "published ChatTTS speaker statistics" in provenance["source"]
        assert provenance["algorithm"]
        assert provenance["seed"]
        assert found.facts["auditioned"] is False


def test_shipped_vectors_lie_where_published_speakers_lie() -> None:
    # statistics in the specification: deviations 1.6 ... 15.7, means -8.8 ... 8.9
    for path in sorted(SHIPPED.glob("*.json")):
        vector = parse_voice(path.read_bytes(), path.stem, 768).voice.speaker_embedding
        assert vector is not None
        assert 3 < np.abs(vector.astype(np.float64)).mean() < 5
        assert np.abs(vector).max() < 80
