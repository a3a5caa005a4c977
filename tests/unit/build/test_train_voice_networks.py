"""The networks of the training are the published ones: same numbers as the NumPy reference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reference_encoder
import reference_gpt
import reference_speech

torch = pytest.importorskip("torch")

from checkpoint import Checkpoint  # noqa: E402
from conftest import TINY_CHECKPOINT  # noqa: E402
from train_voice.dvae import COARSE, ZERO_CODE, without_fine  # noqa: E402
from train_voice.export import VoiceModel, read_voice, write_weights  # noqa: E402
from train_voice.features import LogMel  # noqa: E402
from train_voice.generation import Sampling, draw, generate  # noqa: E402
from train_voice.gpt import Cache  # noqa: E402
from train_voice.token_data import END  # noqa: E402
from train_voice.tokenizer import Prompt  # noqa: E402

TOLERANCE = 2e-4
Array = np.ndarray[Any, Any]


@pytest.fixture(scope="module")
def voice() -> VoiceModel:
    return read_voice(TINY_CHECKPOINT)


@pytest.fixture(scope="module")
def checkpoint() -> Checkpoint:
    return Checkpoint.open(TINY_CHECKPOINT)


def random(*shape: int) -> Array:
    return np.random.default_rng(1).standard_normal(shape, np.float32)


def assert_close(found: Any, wanted: Array) -> None:
    np.testing.assert_allclose(found.detach().numpy(), wanted, atol=TOLERANCE, rtol=TOLERANCE)


def test_the_features_are_those_of_the_encoder(checkpoint: Checkpoint) -> None:
    wave = 0.1 * random(5000)
    wanted = reference_encoder.log_mel(wave, checkpoint.load("DVAE"))
    assert_close(LogMel()(torch.from_numpy(wave)[None])[0].T, wanted)


def test_the_decoder_is_the_published_one(voice: VoiceModel, checkpoint: Checkpoint) -> None:
    hidden = random(9, checkpoint.gpt.hidden_size)
    layers = checkpoint.decoder.num_layers
    wanted = reference_speech.hidden_to_mel(hidden, checkpoint.load("Decoder"), layers)
    assert_close(voice.decoder(torch.from_numpy(hidden.T)[None])[0].T, wanted)


def test_a_padded_row_is_decoded_as_if_it_were_alone(voice: VoiceModel) -> None:
    steps = torch.from_numpy(random(2, voice.model.sizes.hidden_size, 12))
    mask = torch.ones(2, 1, 24)
    mask[0, :, 14:] = 0
    padded = voice.decoder(steps, mask)[0, :, :14]
    assert_close(padded, voice.decoder(steps[:1, :, :7])[0].detach().numpy())


def test_the_dvae_encodes_and_decodes_as_published(
    voice: VoiceModel, checkpoint: Checkpoint
) -> None:
    wave, tensors = 0.1 * random(8000), checkpoint.load("DVAE")
    codes = reference_encoder.encode(wave, tensors, checkpoint.dvae.encoder.num_layers)
    found = voice.dvae.encode(LogMel()(torch.from_numpy(wave)[None]))[0]
    assert (found.numpy() == codes).mean() > 0.99
    wanted = reference_speech.codes_to_mel(codes, tensors, checkpoint.dvae.decoder.num_layers)
    assert_close(voice.dvae.decode(torch.from_numpy(codes).long()[None])[0].T, wanted)


def test_without_its_second_stage_a_code_adds_nothing(voice: VoiceModel) -> None:
    codes = torch.randint(0, 625, (1, 6, 4))
    coarse = without_fine(codes)
    assert (coarse[..., list(COARSE)] == codes[..., list(COARSE)]).all()
    mel = LogMel()(torch.from_numpy(0.1 * random(1, 8000)))
    features, all_codes = voice.dvae.quantize(mel, torch.zeros(1, 1, 1))
    assert_close(voice.dvae(features), voice.dvae.decode(without_fine(all_codes)).detach().numpy())
    assert without_fine(all_codes)[..., 1].eq(ZERO_CODE).all()


def test_gradients_pass_the_quantiser(voice: VoiceModel) -> None:
    mel = LogMel()(torch.from_numpy(0.1 * random(1, 8000)))
    features, _ = voice.dvae.quantize(mel, torch.ones(1, 1, 1))
    features.sum().backward()
    assert voice.dvae.downsample_conv[0].weight.grad.abs().sum() > 0
    voice.dvae.zero_grad()


def test_vocos_is_the_published_one(voice: VoiceModel, checkpoint: Checkpoint) -> None:
    mel = random(20, 100) - 3
    layers = checkpoint.vocos.num_layers
    wanted = reference_speech.mel_to_wave(mel, checkpoint.load("Vocos"), layers)
    assert_close(voice.vocos(torch.from_numpy(mel.T)[None])[0], wanted)


def test_the_token_model_is_the_published_one(voice: VoiceModel, checkpoint: Checkpoint) -> None:
    embeds, sizes = 0.1 * random(11, checkpoint.gpt.hidden_size), checkpoint.gpt
    wanted = reference_gpt.hidden_states(embeds, checkpoint.load("gpt"), sizes)
    hidden, _ = voice.model.llama(torch.from_numpy(embeds)[None])
    assert_close(hidden[0], wanted)
    logits = reference_gpt.code_logits(wanted, checkpoint.load("Embed"), sizes)
    found = torch.stack([head(hidden[0]) for head in voice.model.embed.head_code], dim=1)
    assert_close(found, logits)


def test_watched_attention_looks_back_only_and_sums_to_one(voice: VoiceModel) -> None:
    embeds = torch.from_numpy(0.1 * random(2, 6, voice.model.sizes.hidden_size))
    _, attention = voice.model.llama(embeds, [(1, 0), (1, 1)])
    assert len(attention) == 2
    chances = attention[0].exp()
    assert torch.allclose(chances.sum(dim=2), torch.ones(2, 6), atol=1e-5)
    assert chances[0].triu(1).sum() == 0


def test_steps_with_a_cache_equal_the_whole_row(voice: VoiceModel) -> None:
    llama = voice.model.llama
    rows = torch.from_numpy(0.1 * random(2, 8, llama.sizes.hidden_size))
    whole, _ = llama(rows)
    lengths = torch.tensor([3, 5])
    cache = Cache(llama.sizes, 2, 8)
    llama(rows[:, :5], cache=cache)
    for step in range(3):
        places = lengths + step
        found = llama.step(rows[torch.arange(2), places], cache, places)
        assert_close(found, whole[torch.arange(2), places].detach().numpy())


def test_a_generated_row_does_not_depend_on_neighbours_and_is_cut(voice: VoiceModel) -> None:
    prompts = [Prompt([5, 6, 7], []), Prompt([8, 9, 10, 11, 12], [])]
    speakers = torch.zeros(2, voice.model.sizes.hidden_size)
    greedy = Sampling(temperature=1e-6, repetition_penalty=1.0)
    both = generate(voice.model, prompts, speakers, -1, 6, greedy)
    alone = generate(voice.model, prompts[:1], speakers[:1], -1, 6, greedy)
    assert torch.equal(both[0].codes, alone[0].codes)
    assert both[0].codes.shape == (6, 4)
    assert both[0].hidden.shape == (6, voice.model.sizes.hidden_size)
    assert not both[0].has_ended
    assert int(both[0].codes.max()) < END


def test_a_row_ends_where_one_codebook_says_the_end(voice: VoiceModel) -> None:
    said = 0

    def end_at_the_third(_module: Any, _inputs: Any, logits: Any) -> Any:
        nonlocal said
        said += 1
        forced = torch.zeros_like(logits)
        forced[..., END if said == 3 else 5] = 9.0
        return forced

    prompt, speakers = Prompt([5, 6, 7], []), torch.zeros(1, voice.model.sizes.hidden_size)
    handle = voice.model.embed.head_code[0].register_forward_hook(end_at_the_third)
    try:
        (row,) = generate(voice.model, [prompt], speakers, -1, 6, Sampling(temperature=1e-6))
    finally:
        handle.remove()
    assert row.has_ended
    assert row.codes.shape == (2, 4)
    assert row.hidden.shape == (2, voice.model.sizes.hidden_size)


def test_at_least_three_candidates_survive_and_repeats_are_held_down() -> None:
    logits = torch.full((1, 4, 626), -10.0)
    logits[..., 7], logits[..., 8], logits[..., 9] = 9.0, 8.9, 8.8
    generator = torch.Generator().manual_seed(1)
    none = torch.zeros(1, 0, 4, dtype=torch.long)
    sampling = Sampling(temperature=5.0, top_p=1e-6, top_k=1, repetition_penalty=1.0)
    drawn = torch.stack([draw(logits, none, sampling, generator) for _ in range(60)])
    assert set(drawn.flatten().tolist()) == {7, 8, 9}
    past = torch.full((1, 20, 4), 7)
    greedy = Sampling(temperature=1e-3, repetition_penalty=1.05)
    assert 7 not in draw(logits, past, greedy, generator).flatten().tolist()


def test_an_exported_voice_is_a_checkpoint_and_comes_back(
    voice: VoiceModel, tmp_path: Path
) -> None:
    write_weights(tmp_path, voice)
    (tmp_path / "asset/tokenizer").mkdir()
    source = TINY_CHECKPOINT / "asset/tokenizer/tokenizer.json"
    (tmp_path / "asset/tokenizer/tokenizer.json").write_bytes(source.read_bytes())
    assert Checkpoint.open(tmp_path).gpt == Checkpoint.open(TINY_CHECKPOINT).gpt
    back = read_voice(tmp_path)
    for first, second in zip(voice.modules(), back.modules(), strict=True):
        for name, tensor in first.state_dict().items():
            other = second.state_dict()[name]
            assert torch.allclose(tensor, other, rtol=2e-3, atol=1e-6), name
