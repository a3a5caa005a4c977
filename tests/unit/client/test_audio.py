"""Audio files and PCM: what is written is what was spoken, or nothing is."""

from __future__ import annotations

import copy
import dataclasses
import errno
import io
import os
import pickle
import sys
import types
import wave
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from chattts_client import ChatTTSClient, WavWriter
from chattts_client._audio import SUFFIXES, pcm16, play_audio, save_audio, wav_bytes
from chattts_client._files import replacing
from numpy.typing import NDArray

RATE_HZ = 24_000


def tone(count: int) -> NDArray[np.float32]:
    return (0.5 * np.sin(np.arange(count) * 0.05)).astype(np.float32)


def test_pcm16_rounds_and_clips_to_the_full_range() -> None:
    samples = np.array([-2.0, -1.0, 0.0, 0.5, 1.0, 2.0], dtype=np.float32)
    values = np.frombuffer(pcm16(samples), dtype="<i2")
    assert values.tolist() == [-32767, -32767, 0, 16384, 32767, 32767]


def test_what_is_no_number_is_silence() -> None:
    samples = np.array([np.nan, np.inf, -np.inf], dtype=np.float32)
    assert np.frombuffer(pcm16(samples), dtype="<i2").tolist() == [0, 32767, -32767]


def test_wav_bytes_are_a_mono_16_bit_file_of_the_samples() -> None:
    samples = np.linspace(-1, 1, 480, dtype=np.float32)
    with wave.open(io.BytesIO(wav_bytes(samples, RATE_HZ))) as file:
        assert file.getparams()[:4] == (1, 2, RATE_HZ, 480)
        assert file.readframes(480) == pcm16(samples)


def test_no_samples_make_a_valid_empty_file() -> None:
    with wave.open(io.BytesIO(wav_bytes(np.zeros(0, dtype=np.float32), RATE_HZ))) as file:
        assert file.getnframes() == 0


def test_a_file_written_in_chunks_equals_one_written_at_once(tmp_path: Path) -> None:
    samples = np.linspace(-1, 1, 1000, dtype=np.float32)
    save_audio(tmp_path / "whole.wav", samples, RATE_HZ)
    with WavWriter(tmp_path / "chunks.WAV", RATE_HZ) as writer:
        for piece in np.split(samples, 4):
            writer.write(piece)
    assert (tmp_path / "chunks.WAV").read_bytes() == (tmp_path / "whole.wav").read_bytes()


def test_an_unfinished_file_can_be_read_up_to_the_last_chunk(tmp_path: Path) -> None:
    path = tmp_path / "partial.wav"
    with WavWriter(path, RATE_HZ) as writer:
        writer.write(np.zeros(300, dtype=np.float32))
        with wave.open(str(path)) as file:
            assert file.getnframes() == 300


def test_a_closed_file_takes_nothing_more(tmp_path: Path) -> None:
    path = tmp_path / "closed.wav"
    with WavWriter(path, RATE_HZ) as writer:
        writer.write(tone(3))
    content = path.read_bytes()
    with pytest.raises(ValueError, match=r"closed\.wav' is closed"):
        writer.write(tone(3))
    writer.close()
    assert path.read_bytes() == content


def test_a_full_disk_names_the_file_that_is_written_in_chunks(tmp_path: Path) -> None:
    path = tmp_path / "full.wav"
    path.symlink_to("/dev/full")
    writer = WavWriter(path, RATE_HZ)
    for step in (lambda: writer.write(tone(3)), writer.close):
        with pytest.raises(OSError, match="No space left on device: .*full.wav'"):
            step()
    writer.close()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_each_known_suffix_holds_the_whole_utterance(tmp_path: Path, suffix: str) -> None:
    samples = tone(100_000)  # more than one block
    path = tmp_path / f"speech{suffix.upper()}"
    save_audio(path, samples, RATE_HZ)
    found, rate_hz = soundfile.read(path, dtype="float32")
    assert (len(found), rate_hz) == (len(samples), RATE_HZ)
    assert np.corrcoef(found, samples)[0, 1] > 0.99
    assert list(tmp_path.iterdir()) == [path]


def test_wav_and_flac_hold_the_same_samples(tmp_path: Path) -> None:
    save_audio(tmp_path / "a.wav", tone(5000), RATE_HZ)
    save_audio(tmp_path / "a.flac", tone(5000), RATE_HZ)
    wav, flac = (soundfile.read(tmp_path / name, dtype="int16")[0] for name in ("a.wav", "a.flac"))
    np.testing.assert_array_equal(wav, flac)


@pytest.mark.parametrize("rate", [0, -1, 24_000.0, True, "24000", 1 << 31])
def test_a_wrong_rate_leaves_the_old_file_as_it_was(tmp_path: Path, rate: Any) -> None:
    path = tmp_path / "speech.wav"
    path.write_bytes(b"old")
    with pytest.raises(ValueError, match=r"^sample_rate: .* is not a whole number of Hz"):
        WavWriter(path, rate)
    assert path.read_bytes() == b"old"


def test_an_unknown_suffix_names_the_known_ones_and_writes_nothing(tmp_path: Path) -> None:
    for name in ("audio.aac", "audio", ".wav"):
        with pytest.raises(ValueError, match=r"^path: .* none of \.wav, \.flac, \.ogg, \.mp3$"):
            save_audio(tmp_path / name, tone(3), RATE_HZ)
    with pytest.raises(ValueError, match=r"does not end in \.wav"):
        WavWriter(tmp_path / "audio.mp3", RATE_HZ)
    assert not list(tmp_path.iterdir())


def test_a_full_disk_names_the_file_too(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with pytest.raises(OSError, match="No space") as raised, replacing(path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert raised.value.filename == str(path)
    with pytest.raises(OSError, match="elsewhere") as raised, replacing(path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "elsewhere")
    assert not [*tmp_path.iterdir()]


def test_a_place_where_nothing_can_be_made_or_removed_names_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, *more: object, **flags: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    monkeypatch.setattr("builtins.open", refuse)
    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(OSError, match="Read-only") as raised, replacing(tmp_path / "file"):
        raise AssertionError
    assert raised.value.filename == str(tmp_path / "file")


@pytest.mark.parametrize(
    "copied", [lambda one: pickle.loads(pickle.dumps(one)), copy.deepcopy, copy.copy]
)
def test_a_copy_of_audio_is_equal_and_read_only(
    copied: Callable[[Any], Any], grpc_url: str
) -> None:
    with ChatTTSClient(grpc_url) as client, client.stream("hello") as stream:
        for one in (*stream, stream.result()):
            other = copied(one)
            assert type(other) is type(one)
            assert not other.samples.flags.writeable
            for field in dataclasses.fields(one):
                found, expected = (getattr(each, field.name) for each in (other, one))
                np.testing.assert_equal(found, expected)


def test_no_audio_fits_into_wav_only(tmp_path: Path) -> None:
    save_audio(tmp_path / "none.wav", tone(0), RATE_HZ)
    with pytest.raises(ValueError, match=r"^path: there is no audio"):
        save_audio(tmp_path / "none.flac", tone(0), RATE_HZ)
    assert [path.name for path in tmp_path.iterdir()] == ["none.wav"]


def test_an_error_names_the_file_that_was_asked_for(tmp_path: Path) -> None:
    no_folder = str(tmp_path / "none" / "speech.wav")
    with pytest.raises(FileNotFoundError) as raised:
        save_audio(no_folder, tone(3), RATE_HZ)
    assert str(raised.value) == f"[Errno 2] No such file or directory: {no_folder!r}"
    folder = tmp_path / "speech.wav"
    folder.mkdir()
    with pytest.raises(IsADirectoryError) as raised_too:
        save_audio(folder, tone(3), RATE_HZ)
    assert str(raised_too.value) == f"[Errno 21] Is a directory: {str(folder)!r}"
    assert [*tmp_path.iterdir()] == [folder]


def test_an_error_leaves_the_old_file_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*paths: object) -> None:
        raise OSError("no space left")

    path = tmp_path / "speech.wav"
    save_audio(path, tone(10), RATE_HZ)
    before = path.read_bytes()
    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="no space left"):
        save_audio(path, tone(20), RATE_HZ)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_saving_keeps_permissions_and_follows_links(tmp_path: Path) -> None:
    target, link = tmp_path / "private.wav", tmp_path / "link.wav"
    target.touch(mode=0o600)
    link.symlink_to(target)
    save_audio(link, tone(10), RATE_HZ)
    assert link.is_symlink()
    assert target.stat().st_mode & 0o777 == 0o600
    assert target.stat().st_size > 0


@pytest.mark.parametrize(("extra", "module"), [("audio", "soundfile"), ("play", "sounddevice")])
def test_a_missing_extra_is_named(
    extra: str, module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def use() -> None:
        if extra == "audio":
            save_audio(tmp_path / "speech.flac", tone(10), RATE_HZ)
        else:
            play_audio(tone(10), RATE_HZ)

    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf"pip install '\.\[{extra}\]'"):
        use()
    assert not list(tmp_path.iterdir())


class FakeSound(types.ModuleType):
    """Stands in for sounddevice, which needs a library and an output."""

    class PortAudioError(Exception):
        """Any failure of the output."""

    def __init__(self) -> None:
        super().__init__("sounddevice")
        self.played: list[Any] = []
        self.failure: BaseException | None = None
        self.is_stopped = False

    def play(self, samples: NDArray[np.float32], rate_hz: int, blocking: bool) -> None:
        self.played.append((samples, rate_hz, blocking))
        if self.failure is not None:
            raise self.failure

    def stop(self) -> None:
        self.is_stopped = True


@pytest.fixture
def sound(monkeypatch: pytest.MonkeyPatch) -> FakeSound:
    fake = FakeSound()
    monkeypatch.setitem(sys.modules, "sounddevice", fake)
    return fake


def test_playing_waits_for_the_end_of_all_samples(sound: FakeSound) -> None:
    samples = tone(10)
    play_audio(samples, RATE_HZ)
    play_audio(tone(0), RATE_HZ)  # nothing to hear
    assert sound.played == [(samples, RATE_HZ, True)]


def test_an_output_that_fails_is_an_os_error(sound: FakeSound) -> None:
    sound.failure = sound.PortAudioError("no default output device")
    with pytest.raises(OSError, match="cannot be played: no default output device"):
        play_audio(tone(10), RATE_HZ)


def test_an_interruption_stops_the_sound(sound: FakeSound) -> None:
    sound.failure = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        play_audio(tone(10), RATE_HZ)
    assert sound.is_stopped
