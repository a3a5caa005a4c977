"""The vocoder graphs: golden waveforms on both paths, chunks, lengths, and rows apart from rows.

Tolerance: 1e-4 of the largest value (golden.RELATIVE_TOLERANCE); seen are 2e-6 and less.
"""

from __future__ import annotations

from dataclasses import replace
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
from make_checkpoint import tiny_sizes, write_checkpoint
from vocoder_graph import write_code_vocoder, write_hidden_vocoder
from vocoder_runs import run_in_batches

CHECKPOINT = Checkpoint.open(TINY)
TEXTS = range(NUM_TEXTS)
LENGTHS = (1, 2, 3, 5, 13, 24, 40)
MAX_OPSET, MAX_IR = 17, 8
"""What the ONNX Runtime of a Triton 24.05 container loads."""


@pytest.fixture(scope="module")
def hidden_vocoder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("vocoder") / "hidden.onnx"
    path.write_bytes(write_hidden_vocoder(CHECKPOINT).onnx)
    return selfcheck.open_session(path)


@pytest.fixture(scope="module")
def code_vocoder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("vocoder") / "codes.onnx"
    path.write_bytes(write_code_vocoder(CHECKPOINT).onnx)
    return selfcheck.open_session(path)


def speak(session: Any, steps: Array, chunk_steps: int = 24) -> Array:
    return selfcheck.run_vocoder(session, steps, chunk_steps)


@pytest.mark.parametrize("text", TEXTS)
def test_hidden_states_become_the_golden_waveform(text: int, hidden_vocoder: Any) -> None:
    audio = speak(hidden_vocoder, TINY_ARRAYS[f"greedy_hidden_{text}"])
    assert_close(audio, TINY_ARRAYS[f"wav_hidden_{text}"])


@pytest.mark.parametrize("text", TEXTS)
def test_codes_become_the_golden_waveform(text: int, code_vocoder: Any) -> None:
    audio = speak(code_vocoder, TINY_ARRAYS[f"greedy_codes_{text}"].astype(np.int32))
    assert_close(audio, TINY_ARRAYS[f"wav_codes_{text}"])


def test_a_long_sequence_becomes_the_golden_waveform(hidden_vocoder: Any) -> None:
    assert_close(speak(hidden_vocoder, TINY_ARRAYS["long_hidden"]), TINY_ARRAYS["long_wav"])


@pytest.mark.parametrize("chunk_steps", [1, 2, 5, 48, 96, 200])
def test_every_chunking_gives_the_same_bits(chunk_steps: int, hidden_vocoder: Any) -> None:
    hidden = TINY_ARRAYS["long_hidden"][:90]
    wanted = speak(hidden_vocoder, hidden)
    assert speak(hidden_vocoder, hidden, chunk_steps).tobytes() == wanted.tobytes()


def test_context_is_neither_too_small_nor_too_large(hidden_vocoder: Any) -> None:
    step, context = 80, CHECKPOINT.context_steps
    hidden = TINY_ARRAYS["long_hidden"].copy()
    before = speak(hidden_vocoder, hidden)
    hidden[step] += 10 * np.random.default_rng(0).standard_normal(hidden.shape[1])
    changed = np.flatnonzero(speak(hidden_vocoder, hidden) != before) // SAMPLES_PER_STEP
    assert changed.min() == step - context
    assert changed.max() == step + context


@pytest.mark.parametrize("length", LENGTHS)
def test_every_length_equals_the_reference_to_its_last_sample(
    length: int, hidden_vocoder: Any
) -> None:
    hidden = TINY_ARRAYS["long_hidden"][:length]
    decoder, vocos = CHECKPOINT.load("Decoder"), CHECKPOINT.load("Vocos")
    mel = reference_speech.hidden_to_mel(hidden, decoder, CHECKPOINT.decoder.num_layers)
    wave = reference_speech.mel_to_wave(mel, vocos, CHECKPOINT.vocos.num_layers)
    assert_close(speak(hidden_vocoder, hidden), wave)


def test_a_reach_that_is_no_whole_number_of_steps_is_rounded_up(tmp_path: Path) -> None:
    root, path = tmp_path / "odd", tmp_path / "odd.onnx"
    sizes = tiny_sizes()
    vocos = replace(sizes.vocos, num_layers=sizes.vocos.num_layers + 1)
    write_checkpoint(root, replace(sizes, vocos=vocos), seed=3)
    checkpoint = Checkpoint.open(root)
    path.write_bytes(write_hidden_vocoder(checkpoint).onnx)
    assert "error" in selfcheck.check_vocoder(path, checkpoint)


def test_outside_the_segment_there_is_silence(hidden_vocoder: Any) -> None:
    context, steps = CHECKPOINT.context_steps, 30
    facts = hidden_vocoder.get_modelmeta().custom_metadata_map
    hidden = np.random.default_rng(5).standard_normal((1, 100, 64)).astype(np.float32)
    mask = np.zeros((1, 100), np.float32)
    mask[:, 11 : 11 + steps] = 1
    hidden[mask == 0] = np.nan
    state = np.zeros((1, int(facts["state_size"])), np.float32)
    feeds = {"hidden": hidden, "mask": mask, "state": state}
    audio = hidden_vocoder.run(["audio"], feeds)[0][0]
    start = SAMPLES_PER_STEP * (11 + context)
    end = start + SAMPLES_PER_STEP * steps - SAMPLES_PER_STEP // 2
    assert not audio[:start].any()
    assert not audio[end:].any()
    wanted = speak(hidden_vocoder, hidden[0, 11 : 11 + steps])
    assert audio[start:end].tobytes() == wanted.tobytes()


@pytest.mark.parametrize("chunk_steps", [1, 3, 24])
def test_a_row_is_the_same_bits_whatever_it_is_batched_with(
    chunk_steps: int, hidden_vocoder: Any
) -> None:
    random = np.random.default_rng(chunk_steps)
    lengths = random.integers(1, 90, 9)
    segments = [random.standard_normal((n, 64)).astype(np.float32) for n in lengths]
    waves = run_in_batches(hidden_vocoder, segments, chunk_steps, seed=chunk_steps)
    for segment, wave in zip(segments, waves, strict=True):
        assert wave.tobytes() == speak(hidden_vocoder, segment).tobytes()


def test_every_code_is_understood_and_others_are_refused(code_vocoder: Any) -> None:
    codes = np.arange(NUM_CODES, dtype=np.int32)[:, None].repeat(4, axis=1)
    assert np.isfinite(speak(code_vocoder, codes)).all()
    with pytest.raises(Exception, match="out of data bounds|out of bounds"):
        speak(code_vocoder, codes + 1)


@pytest.mark.parametrize("write", [write_hidden_vocoder, write_code_vocoder])
def test_the_graph_loads_in_any_container_since_24_05(write: Any) -> None:
    model = onnx.load_from_string(write(CHECKPOINT).onnx)
    onnx.checker.check_model(model, full_check=True)
    assert model.ir_version <= MAX_IR
    assert [(o.domain, o.version <= MAX_OPSET) for o in model.opset_import] == [("", True)]
    assert {node.domain for node in model.graph.node} == {""}
    shapes = {
        value.name: [dim.dim_param for dim in value.type.tensor_type.shape.dim][:2]
        for value in [*model.graph.input, *model.graph.output]
    }
    # symbolic: the C++ backend refuses a fixed size where config.pbtxt has -1
    assert list(shapes.values()) == [
        ["batch", "steps"],
        ["batch", "steps"],
        ["batch", "state_size"],
        ["batch", "samples"],
        ["batch", "state_size"],
    ]


@pytest.mark.parametrize("path", ["hidden", "codes"])
def test_the_command_exports_either_path(
    path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "vocoder.onnx"
    arguments = ["--checkpoint", str(TINY), "--path", path, "--output", str(output)]
    assert export_main(arguments) == 0
    assert f"{path} path, error" in capsys.readouterr().out
    assert [value.name for value in onnx.load(output).graph.input] == [path, "mask", "state"]


def test_the_command_names_a_missing_checkpoint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "vocoder.onnx"
    assert export_main(["--checkpoint", str(tmp_path), "--output", str(output)]) == 1
    assert "asset/Decoder.safetensors" in capsys.readouterr().err
    assert not output.exists()
