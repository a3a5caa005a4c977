"""Untrained checkpoints: the published form, sane numbers, and a warning that cannot be missed."""

from __future__ import annotations

from pathlib import Path

import layout
import numpy as np
import pytest
import reference_gpt
import reference_speech
import selfcheck
from artifacts import check_tokenizer
from checkpoint import Checkpoint
from conftest import TINY_CHECKPOINT
from make_checkpoint import full_sizes, main, write_checkpoint
from tokenizer_file import write_tokenizer
from tokenizers import Tokenizer
from voice_copies import find_voices
from voice_format import parse_voice

FIRST_PUBLISHED_SPECIAL_ID = 21_128


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("made") / "tiny"
    assert main(["--size", "tiny", "--seed", "5", "--output", str(root)]) == 0
    return root


def read_all(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def load_tokenizer(folder: Path) -> Tokenizer:
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def test_it_is_a_complete_checkpoint_marked_untrained(tiny: Path) -> None:
    checkpoint = Checkpoint.open(tiny)
    assert checkpoint.is_untrained
    check_tokenizer(tiny / layout.TOKENIZER_FILE, checkpoint.gpt.num_text_tokens)
    files = find_voices(tiny, [], "").files
    for name in ("en", "zh"):
        content = files[f"{name}.json"].read_bytes()
        parse_voice(content, name, checkpoint.gpt.hidden_size)


def test_the_same_seed_gives_the_same_bytes_and_another_other_ones(
    tiny: Path, tmp_path: Path
) -> None:
    assert main(["--size", "tiny", "--seed", "5", "--output", str(tmp_path / "same")]) == 0
    assert main(["--size", "tiny", "--seed", "6", "--output", str(tmp_path / "other")]) == 0
    assert read_all(tmp_path / "same") == read_all(tiny)
    assert read_all(tmp_path / "other") != read_all(tiny)


def test_its_numbers_are_sane(tiny: Path) -> None:
    checkpoint = Checkpoint.open(tiny)
    embed = checkpoint.load("Embed")
    embeds = selfcheck.sample_embeddings(checkpoint.gpt, embed)
    hidden = reference_gpt.hidden_states(embeds, checkpoint.load("gpt"), checkpoint.gpt)
    logits = reference_gpt.code_logits(hidden, embed, checkpoint.gpt)
    assert 0.5 < hidden.std() < 2
    assert 1 < logits.std() < 10
    ends = logits[..., layout.NUM_CODES]
    assert (ends < logits.max(axis=-1)).all(), "the end token must not be the likeliest at once"
    mel = reference_speech.hidden_to_mel(
        hidden, checkpoint.load("Decoder"), checkpoint.decoder.num_layers
    )
    wave = reference_speech.mel_to_wave(mel, checkpoint.load("Vocos"), checkpoint.vocos.num_layers)
    assert np.isfinite(wave).all()
    assert 1e-3 < np.abs(wave).max() < 1


def test_an_untrained_folder_is_replaced_and_any_other_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made, other = tmp_path / "made", tmp_path / "other"
    for _ in range(2):
        assert main(["--size", "tiny", "--output", str(made)]) == 0
    other.mkdir()
    (other / "thesis.txt").write_text("mine", encoding="utf-8")
    assert main(["--size", "tiny", "--output", str(other)]) == 1
    assert "is not an untrained one" in capsys.readouterr().err
    assert [path.name for path in other.iterdir()] == ["thesis.txt"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["made", "other"]


def test_an_interrupted_run_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(root: Path, *_: object) -> None:
        (root / "asset").mkdir(parents=True)
        raise KeyboardInterrupt

    monkeypatch.setattr("make_checkpoint.write_checkpoint", interrupted)
    assert main(["--size", "tiny", "--output", str(tmp_path / "made")]) == 130
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr("make_checkpoint.write_checkpoint", write_checkpoint)
    assert main(["--size", "tiny", "--output", str(tmp_path / "made")]) == 0


def test_the_full_vocabulary_has_the_published_ids(tmp_path: Path) -> None:
    sizes = full_sizes()
    assert sizes.gpt.num_text_tokens == 21_178
    write_tokenizer(tmp_path, sizes.vocabulary)
    tokenizer = load_tokenizer(tmp_path)
    assert tokenizer.get_vocab_size() == sizes.gpt.num_text_tokens
    fixed = {"[PAD]": 0, "[UNK]": 100, "[CLS]": 101, "[SEP]": 102, "[MASK]": 103}
    assert {token: tokenizer.token_to_id(token) for token in fixed} == fixed
    ids = [tokenizer.token_to_id(token) for token in layout.SPECIAL_TOKENS]
    first = FIRST_PUBLISHED_SPECIAL_ID
    assert ids == list(range(first, first + len(layout.SPECIAL_TOKENS)))


def test_text_becomes_the_same_kind_of_pieces_as_with_the_published_tokenizer(
    tiny: Path,
) -> None:
    tokenizer = load_tokenizer(tiny / "asset/tokenizer")
    text = "[Stts][spk_emb][speed_5]Hi, 你好[uv_break][Uv_break]\U0001f600[Ptts]"
    pieces = tokenizer.encode(text, add_special_tokens=False).tokens
    start = ["[Stts]", "[spk_emb]", "[speed_5]", "h", "##i", ",", "你", "好", "[uv_break]"]
    assert pieces[: len(start)] == start
    assert pieces[-2:] == ["[UNK]", "[Ptts]"]
    assert pieces.count("[uv_break]") == 1


def test_a_reader_must_switch_truncation_and_padding_off_as_with_the_published_file(
    tiny: Path,
) -> None:
    tokenizer = Tokenizer.from_file(str(tiny / layout.TOKENIZER_FILE))
    assert len(tokenizer.encode("a " * 400).ids) == 256
    assert len(load_tokenizer(tiny / "asset/tokenizer").encode("a " * 400).ids) == 400


def test_control_tokens_stand_in_the_order_of_the_golden_tokenizer() -> None:
    tokenizer = load_tokenizer(TINY_CHECKPOINT / "asset/tokenizer")
    ids = [tokenizer.token_to_id(token) for token in layout.SPECIAL_TOKENS]
    assert ids == list(range(ids[0], ids[0] + len(ids)))
