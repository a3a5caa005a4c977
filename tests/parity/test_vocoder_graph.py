"""The vocoder graphs: golden waveforms on both paths, windows, lengths, and rows apart from rows.

Tolerance: 1e-4 of the largest value (golden.RELATIVE_TOLERANCE); seen are 2e-6 and less.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import reference_speech
import selfcheck
from checkpoint import Array, Checkpoint
from export_vocoder import main as export_main
from golden import NUM_TEXTS, TINY, TINY_ARRAYS, assert_close
from layout import NUM_CODES, SAMPLES_PER_STEP
from vocoder_graph import write_code_vocoder, write_hidden_vocoder

CHECKPOINT = Checkpoint.open(TINY)
TEXTS = range(NUM_TEXTS)
LENGTHS = (1, 2, 3, 5, 13, 24, 40)
MAX_OPSET, MAX_IR = 17, 8
"""What the ONNX Runtime of a Triton 24.05 container loads."""


@pytest.fixture(scope="module")
def hidden_vocoder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("vocoder") / "hidden.onnx"
    path.write_bytes(write_hidden_vocoder(CHECKPOINT))
    return selfcheck.open_session(path)


@pytest.fixture(scope="module")
def code_vocoder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("vocoder") / "codes.onnx"
    path.write_bytes(write_code_vocoder(CHECKPOINT))
    return selfcheck.open_session(path)


def speak(session: Any, hidden: Array) -> Array:
    audio: Array = session.run(None, {"hidden": hidden})[0]
    return audio


@pytest.mark.parametrize("text", TEXTS)
def test_hidden_states_become_the_golden_waveform(text: int, hidden_vocoder: Any) -> None:
    audio = speak(hidden_vocoder, TINY_ARRAYS[f"greedy_hidden_{text}"][None])
    assert_close(audio[0], TINY_ARRAYS[f"wav_hidden_{text}"])


@pytest.mark.parametrize("text", TEXTS)
def test_codes_become_the_golden_waveform(text: int, code_vocoder: Any) -> None:
    (audio,) = code_vocoder.run(None, {"codes": TINY_ARRAYS[f"greedy_codes_{text}"][None]})
    assert_close(audio[0], TINY_ARRAYS[f"wav_codes_{text}"])


def test_a_long_sequence_becomes_the_golden_waveform(hidden_vocoder: Any) -> None:
    audio = speak(hidden_vocoder, TINY_ARRAYS["long_hidden"][None])
    assert_close(audio[0], TINY_ARRAYS["long_wav"])


@pytest.mark.parametrize("start", [0, 40, 100])
def test_a_window_with_context_gives_the_same_samples_as_the_whole(
    start: int, hidden_vocoder: Any
) -> None:
    hidden, wave = TINY_ARRAYS["long_hidden"], TINY_ARRAYS["long_wav"]
    end, context = min(start + 40, len(hidden)), CHECKPOINT.context_steps
    first, last = max(0, start - context), min(len(hidden), end + context)
    window = speak(hidden_vocoder, hidden[None, first:last])[0]
    inside = slice((start - first) * SAMPLES_PER_STEP, (end - first) * SAMPLES_PER_STEP)
    wanted = wave[start * SAMPLES_PER_STEP : end * SAMPLES_PER_STEP]
    assert_close(window[inside], wanted)


def test_context_is_neither_too_small_nor_too_large(hidden_vocoder: Any) -> None:
    step, context = 80, CHECKPOINT.context_steps
    hidden = TINY_ARRAYS["long_hidden"].copy()
    before = speak(hidden_vocoder, hidden[None])[0]
    hidden[step] += 10 * np.random.default_rng(0).standard_normal(hidden.shape[1])
    changed = np.flatnonzero(speak(hidden_vocoder, hidden[None])[0] != before) // SAMPLES_PER_STEP
    assert changed.min() == step - context
    assert changed.max() == step + context


@pytest.mark.parametrize("length", LENGTHS)
def test_every_length_equals_the_reference_to_its_last_sample(
    length: int, hidden_vocoder: Any
) -> None:
    hidden = TINY_ARRAYS["long_hidden"][:length]
    audio = speak(hidden_vocoder, hidden[None])
    assert audio.shape == (1, SAMPLES_PER_STEP * length - SAMPLES_PER_STEP // 2)
    decoder, vocos = CHECKPOINT.load("Decoder"), CHECKPOINT.load("Vocos")
    mel = reference_speech.hidden_to_mel(hidden, decoder, CHECKPOINT.decoder.num_layers)
    wave = reference_speech.mel_to_wave(mel, vocos, CHECKPOINT.vocos.num_layers)
    assert_close(audio[0], wave)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("batch", [2, 3, 5, 16])
def test_a_row_is_the_same_bits_whatever_it_is_batched_with(
    batch: int, length: int, hidden_vocoder: Any
) -> None:
    shape = (batch, length, CHECKPOINT.gpt.hidden_size)
    hidden = np.random.default_rng(length).standard_normal(shape).astype(np.float32)
    together = speak(hidden_vocoder, hidden)
    for row in range(batch):
        alone = speak(hidden_vocoder, hidden[row : row + 1])
        assert together[row].tobytes() == alone[0].tobytes()


def test_every_code_is_understood_and_others_are_refused(code_vocoder: Any) -> None:
    codes = np.arange(NUM_CODES, dtype=np.int32)[None, :, None].repeat(4, axis=2)
    (audio,) = code_vocoder.run(None, {"codes": codes})
    assert np.isfinite(audio).all()
    with pytest.raises(Exception, match="out of data bounds|out of bounds"):
        code_vocoder.run(None, {"codes": codes + 1})


@pytest.mark.parametrize("write", [write_hidden_vocoder, write_code_vocoder])
def test_the_graph_loads_in_any_container_since_24_05(write: Any) -> None:
    model = onnx.load_from_string(write(CHECKPOINT))
    onnx.checker.check_model(model, full_check=True)
    assert model.ir_version <= MAX_IR
    assert [(o.domain, o.version <= MAX_OPSET) for o in model.opset_import] == [("", True)]
    assert {node.domain for node in model.graph.node} == {""}
    names = [dim.dim_param for dim in model.graph.input[0].type.tensor_type.shape.dim[:2]]
    assert names == ["batch", "steps"]


@pytest.mark.parametrize("path", ["hidden", "codes"])
def test_the_command_exports_either_path(
    path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "vocoder.onnx"
    arguments = ["--checkpoint", str(TINY), "--path", path, "--output", str(output)]
    assert export_main(arguments) == 0
    assert f"{path} path, error" in capsys.readouterr().out
    assert [value.name for value in onnx.load(output).graph.input] == [path]


def test_the_command_names_a_missing_checkpoint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "vocoder.onnx"
    assert export_main(["--checkpoint", str(tmp_path), "--output", str(output)]) == 1
    assert "asset/Decoder.safetensors" in capsys.readouterr().err
    assert not output.exists()
