"""The command that makes, brings in, takes out and checks voices."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import wave
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import voice_format
import voice_samples
from checkpoint import Checkpoint
from conftest import ROOT, TINY_CHECKPOINT
from golden import TINY_ARRAYS, TINY_CASES, VECTOR_CASES
from make_voice import main
from recordings import read_recording
from reference_encoder import encode

SPEAKER: str = TINY_CASES["spk_string"]
PROMPT: str = TINY_CASES["prompt_string"]
IMPORT = ("--source", "golden values")
CONSENT = ("--consent", "synthetic voice")
NUM_MAKERS = 50


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "voices"
    path.mkdir()
    return path


@pytest.fixture
def stats(tmp_path: Path) -> Path:
    path = tmp_path / "stats"
    path.write_bytes(struct.pack("<128e", *[2.0] * 64, *[0.5] * 64))
    return path


def read(folder: Path, name: str) -> voice_format.VoiceFile:
    path = folder / f"{name}.json"
    return voice_format.parse_voice(path.read_bytes(), name, None)


def error_of(capsys: pytest.CaptureFixture[str]) -> str:
    error = capsys.readouterr().err
    assert error.startswith("make_voice: ")
    assert len(error.splitlines()) == 1
    return error


def random(folder: Path, stats: Path, seed: int, *options: str) -> int:
    command = ["random", "--seed", str(seed), "--stats", str(stats), "--folder", str(folder)]
    return main([*command, *options])


def test_a_random_speaker_tells_how_it_was_made(folder: Path, stats: Path) -> None:
    options = ("--name", "anna", "--gender", "female", "--style", "calm", "--alias", "alloy")
    assert random(folder, stats, 7, *options, "--description", "Calm", "--license", "CC0-1.0") == 0
    facts = read(folder, "anna").facts
    assert (facts["kind"], facts["languages"]) == ("speaker", ["zh", "en"])
    assert (facts["gender"], facts["styles"], facts["aliases"]) == ("female", ["calm"], ["alloy"])
    assert facts["auditioned"] is False
    provenance = facts["provenance"]
    assert (provenance["method"], provenance["seed"]) == ("random", "7")
    assert provenance["tool"] == "make_voice.py random"
    assert "statistics, 64 values, SHA-256 " in provenance["source"]


def test_without_a_name_the_values_give_one(folder: Path, stats: Path) -> None:
    assert random(folder, stats, 7) == 0
    assert random(folder, stats, 7) == 0
    assert random(folder, stats, 8) == 0
    names = sorted(path.stem for path in folder.iterdir())
    assert len(names) == 2
    for name in names:
        assert name == f"speaker-{read(folder, name).facts['sha256'][:12]}"


def test_a_name_is_taken_once(
    folder: Path, stats: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert random(folder, stats, 7, "--name", "anna") == 0
    before = (folder / "anna.json").read_bytes()
    assert random(folder, stats, 7, "--name", "anna", "--description", "other") == 0
    assert "anna: is there already" in capsys.readouterr().out
    assert random(folder, stats, 8, "--name", "anna") == 1
    assert "the name is taken by other values; nothing is changed" in error_of(capsys)
    assert (folder / "anna.json").read_bytes() == before
    assert [path.name for path in folder.iterdir()] == ["anna.json"]


def test_a_name_or_alias_of_another_voice_is_refused(
    folder: Path, stats: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert random(folder, stats, 7, "--name", "anna", "--alias", "alloy") == 0
    capsys.readouterr()
    for options in (("--name", "alloy"), ("--name", "bo", "--alias", "anna")):
        assert random(folder, stats, 8, *options) == 1
        assert "anna.json has that name or alias" in error_of(capsys)


def test_fifty_makers_of_one_name_end_with_one_file_and_one_checksum(
    folder: Path, stats: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with ThreadPoolExecutor(NUM_MAKERS) as threads:
        made = list(threads.map(lambda _: random(folder, stats, 7, "--name", "anna"), range(50)))
    assert made == [0] * NUM_MAKERS
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("anna: made, ") for line in lines) == 1
    sha256 = read(folder, "anna").facts["sha256"]
    assert {line.rsplit(" ", 1)[1] for line in lines} == {sha256}
    assert [path.name for path in folder.iterdir()] == ["anna.json"]


def test_processes_that_make_other_values_under_one_name_leave_one_whole_voice(
    folder: Path, stats: Path
) -> None:
    script = str(ROOT / "build" / "make_voice.py")
    command = [sys.executable, script, "random", "--stats", str(stats), "--folder", str(folder)]
    runs = [
        subprocess.Popen([*command, "--name", "anna", "--seed", str(seed)],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for seed in range(4)
    ]  # fmt: skip
    for run in runs:
        run.communicate()
    assert sorted(run.returncode for run in runs) == [0, 1, 1, 1]
    seed = read(folder, "anna").facts["provenance"]["seed"]
    assert runs[int(seed)].returncode == 0


def test_a_speaker_of_another_size_stays_out_of_a_repository(
    tmp_path: Path, folder: Path, stats: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "checkpoint.json").write_text('{"hidden_size": 768}')
    assert random(folder, stats, 7) == 1
    assert "128 bytes, which are 64 values; allowed: a speaker string of 768" in error_of(capsys)
    assert not list(folder.iterdir())


@pytest.mark.parametrize(
    ("string", "hidden_size"), [(SPEAKER, 64), (VECTOR_CASES["spk_string"], 768)]
)
def test_a_speaker_string_goes_in_and_out(
    folder: Path, string: str, hidden_size: int, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ("--folder", str(folder))
    assert main(["import", string, "--name", "anna", *IMPORT, *where]) == 0
    capsys.readouterr()
    assert main(["export", "anna", *where]) == 0
    exported = capsys.readouterr().out.strip()
    expected = voice_format.decode_speaker(string, hidden_size)
    np.testing.assert_array_equal(voice_format.decode_speaker(exported, hidden_size), expected)


def test_an_audio_prompt_string_goes_in_from_a_file_and_out(
    tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "prompt.txt").write_text(PROMPT + "\n", encoding="utf-8")
    where = ("--folder", str(folder))
    command = ["import", str(tmp_path / "prompt.txt"), "--name", "bo", *IMPORT, *CONSENT, *where]
    assert main([*command, "--transcript", "这是参考音频"]) == 0
    capsys.readouterr()
    assert main(["export", "bo", *where]) == 0
    captured = capsys.readouterr()
    codes = voice_format.decode_audio_prompt(captured.out.strip())
    np.testing.assert_array_equal(codes.T, TINY_ARRAYS["prompt_codes"])
    assert captured.err == "transcript: 这是参考音频\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((SPEAKER[:-4],), "; allowed: a speaker string"),
        (("@@@",), "broken characters"),
        ((SPEAKER, "--transcript", "hi"), "--transcript: the string is no audio prompt"),
        ((PROMPT,), "an audio prompt needs --transcript and --consent"),
        ((PROMPT, *CONSENT, "--transcript", "[Ptts]"), "transcript: '[Ptts]'; allowed"),
        ((SPEAKER, "--name", "a/b"), "name: 'a/b'; allowed"),
        ((SPEAKER, "--alias", "default"), "aliases: "),
        ((SPEAKER, "--folder", "/nowhere"), "/nowhere: no such folder"),
    ],
)
def test_what_is_no_voice_is_refused(
    folder: Path, options: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["import", "--folder", str(folder), *IMPORT, *options]) == 1
    assert message in error_of(capsys)
    assert not list(folder.iterdir())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PK\x03\x04rest", "a PyTorch file, which is a pickle"),
        (b'{"name": "anna"}', "a voice's file already; copy it"),
        (b"\xff\xfe", "invalid start byte"),
    ],
)
def test_other_files_are_not_imported(
    tmp_path: Path,
    folder: Path,
    content: bytes,
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "speaker"
    path.write_bytes(content)
    assert main(["import", str(path), *IMPORT, "--folder", str(folder)]) == 1
    assert message in error_of(capsys)


def write_wave(path: Path, seconds: float) -> Path:
    samples = np.tile(TINY_ARRAYS["prompt_wav"], 4)[: round(seconds * 24_000)]
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(24_000)
        file.writeframes(np.round(samples * 32767).astype("<i2").tobytes())
    return path


def test_a_recording_becomes_an_audio_prompt(tmp_path: Path, folder: Path) -> None:
    path = write_wave(tmp_path / "bo.wav", 1.5)
    command = ["from-wav", str(path), "--checkpoint", str(TINY_CHECKPOINT), "--name", "bo"]
    options = ["--transcript", "Hello.", "--language", "en", "--folder", str(folder)]
    assert main([*command, *options, *CONSENT]) == 0
    found = read(folder, "bo")
    checkpoint = Checkpoint.open(TINY_CHECKPOINT)
    layers = checkpoint.dvae.encoder.num_layers
    codes = encode(read_recording(path), checkpoint.load("DVAE"), layers)
    np.testing.assert_array_equal(found.voice.audio_prompt_codes, codes)
    assert found.voice.transcript == "Hello."
    provenance = found.facts["provenance"]
    assert provenance["consent"] == "synthetic voice"
    assert provenance["source"].startswith("bo.wav, 1.50 s, SHA-256 ")
    assert provenance["encoder"].startswith("DVAE of the checkpoint tiny, SHA-256 ")


def test_a_recording_without_consent_or_of_bad_length_is_refused(
    tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_wave(tmp_path / "bo.wav", 0.5)
    command = ["from-wav", str(path), "--transcript", "Hello.", "--folder", str(folder)]
    with pytest.raises(SystemExit, match="2"):
        main(command)
    assert "--consent" in capsys.readouterr().err
    assert main([*command, *CONSENT]) == 1
    assert "recording: 0.50 s; allowed: 1 ... 30 s" in error_of(capsys)
    assert main([*command[:-1], "/nowhere", *CONSENT]) == 1
    assert not list(folder.iterdir())


def test_check_names_each_broken_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = voice_samples.write(folder, voice_samples.voice("anna"))
    bad = voice_samples.write(folder, voice_samples.voice("bo", sha256="0" * 64))
    assert main(["check", str(good)]) == 0
    assert main(["check", str(good), "--hidden-size", "768"]) == 1
    capsys.readouterr()
    assert main(["check", str(good), str(bad), str(folder / "none.json")]) == 1
    captured = capsys.readouterr()
    assert captured.out.startswith(f"{good}: speaker, SHA-256")
    assert f"{bad}: sha256: " in captured.err
    assert "none.json: " in captured.err
    assert "2 of 3 files would be left out by a server" in captured.err


def test_check_sees_what_lies_beside_a_file(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    voice_samples.write(folder, voice_samples.voice("anna", aliases=["x"]))
    other = voice_samples.write(folder, voice_samples.voice("bo", aliases=["x"]))
    assert main(["check", str(other)]) == 1
    assert "x: " in capsys.readouterr().err
    (folder / "anna.json").unlink()
    assert main(["check", str(other)]) == 0
    (folder.parent / "checkpoint.json").write_text(json.dumps({"hidden_size": 256}))
    assert main(["check", str(other)]) == 1
    assert "bo.json: speaker: " in capsys.readouterr().err


def test_a_file_keeps_readable_json(folder: Path, stats: Path) -> None:
    assert random(folder, stats, 7, "--name", "小美") == 0
    text = (folder / "小美.json").read_text(encoding="utf-8")
    assert '"name": "小美"' in text
    assert json.loads(text)["format"] == 1
    assert (folder / "小美.json").stat().st_mode & 0o777 == 0o644
