"""What the token model is fed and asked for: prompts, words at steps, speakers, losses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tokenizer_file import write_tokenizer  # noqa: E402
from train_voice import token_training  # noqa: E402
from train_voice.copy_task import CopyTask  # noqa: E402
from train_voice.corpus import Language, Utterance, words_of  # noqa: E402
from train_voice.dvae import COARSE, ZERO_CODE  # noqa: E402
from train_voice.gpt import TokenModel  # noqa: E402
from train_voice.nearest import distances, nearest  # noqa: E402
from train_voice.settings import FULL, QUICK, Settings, going_on  # noqa: E402
from train_voice.speakers import SIDES, VOICES, Speakers  # noqa: E402
from train_voice.speech_data import FACTS_FILE, SpeechData, SpeechWriter, Spoken  # noqa: E402
from train_voice.token_data import (  # noqa: E402
    CODES_FILE,
    END,
    NO_WORD,
    Batch,
    TokenData,
    step_weights,
    words_at_steps,
)
from train_voice.token_training import (  # noqa: E402
    FINE,
    guided_loss,
    hidden_of,
    targets,
    with_guesses,
)
from train_voice.tokenizer import VoiceTokenizer, base_vocabulary  # noqa: E402

TEXTS = {"slt": "it's twenty-four o'clock, anna.", "rms": "hello john", "cmn": "你好吗？"}
STEP = 512 / 24_000


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> VoiceTokenizer:
    folder = tmp_path_factory.mktemp("tokenizer")
    write_tokenizer(folder, base_vocabulary())
    return VoiceTokenizer(folder / "tokenizer.json")


@pytest.fixture(scope="module")
def speech(tmp_path_factory: pytest.TempPathFactory) -> SpeechData:
    folder = tmp_path_factory.mktemp("speech")
    with SpeechWriter(folder) as writer:
        for teacher, text in TEXTS.items():
            count = len(words_of(text))
            spans = [(0.1 + 0.2 * i, 0.3 + 0.2 * i) for i in range(count)]
            samples = np.zeros(int(24_000 * (0.3 + 0.2 * count)), np.float32)
            language: Language = "zh" if teacher == "cmn" else "en"
            writer.add(Utterance(text, language, teacher, "train"), samples, spans)
    assert (folder / FACTS_FILE).exists()
    return SpeechData(folder)


@pytest.fixture(scope="module")
def data(
    speech: SpeechData, tokenizer: VoiceTokenizer, tmp_path_factory: pytest.TempPathFactory
) -> TokenData:
    folder = tmp_path_factory.mktemp("codes")
    total = sum(spoken.num_steps for spoken in speech.all)
    codes = np.arange(total)[:, None] % 600 + np.zeros((1, 4), np.int64)
    codes[:, list(FINE)] = ZERO_CODE
    np.save(folder / CODES_FILE, codes.astype(np.int16))
    return TokenData(speech, folder, tokenizer, Speakers(QUICK.sizes.hidden, 1))


@pytest.fixture(scope="module")
def model(tokenizer: VoiceTokenizer) -> TokenModel:
    torch.manual_seed(1)
    return TokenModel(QUICK.sizes.gpt(tokenizer.size), FINE)


def test_every_word_is_one_piece_and_its_last_piece_is_found(tokenizer: VoiceTokenizer) -> None:
    prompt = tokenizer.prompt("it's twenty-four o'clock, 你好。", has_speaker=True)
    assert len(prompt.ids) == 4 + len(
        ["it", "'", "s", "twenty", "-", "four", "o", "'", "clock", *"，你好。"]
    )
    assert tokenizer.id("[UNK]") not in prompt.ids
    assert list(prompt.ids[:3]) == [tokenizer.id(t) for t in ("[Stts]", "[spk_emb]", "[speed_5]")]
    assert prompt.ids[-1] == tokenizer.id("[Ptts]")
    prompt = tokenizer.prompt(TEXTS["slt"], has_speaker=False)
    assert prompt.ids[1] == tokenizer.id("[empty_spk]")
    pieces = [prompt.ids[position] for position in prompt.word_positions]
    assert pieces == [tokenizer.id(p) for p in ("s", "twenty", "four", "clock", "anna")]


def test_each_step_knows_its_word() -> None:
    utterance = Utterance("hello john", "en", "slt", "train")
    spoken = Spoken(
        utterance, 0, round(24_000 * 10 * STEP), [(STEP, 3 * STEP), (5 * STEP, 8 * STEP)]
    )
    words = words_at_steps(spoken)
    assert words.tolist() == [NO_WORD, 0, 0, NO_WORD, NO_WORD, 1, 1, 1, NO_WORD, NO_WORD]
    weights = step_weights(words)
    assert weights[[1, 5]].tolist() == [3, 3]
    assert weights[[0, 8, 9]].tolist() == [1, 1, 1]


def test_a_batch_has_targets_and_places_of_every_row(
    data: TokenData, speech: SpeechData, tokenizer: VoiceTokenizer
) -> None:
    items = [data.item(spoken) for spoken in speech.all]
    batch = data.batch(items)
    wanted = targets(batch)
    for row, item in enumerate(items):
        count = item.spoken.num_steps
        assert (wanted[row, count] == END).all()
        assert (wanted[row, :count] == batch.codes[row, :count]).all()
        assert (batch.weights[row, count + 1 :] == 0).all()
        assert (batch.aligned[row, count:] == NO_WORD).all()
        assert int(batch.is_speaker[row].sum()) == 1
        said = batch.aligned[row][batch.aligned[row] != NO_WORD]
        assert set(said.tolist()) == set(item.prompts[1].word_positions)
    assert np.array_equal(batch.codes[1, : items[1].spoken.num_steps, 0].numpy(),
                          np.arange(items[0].spoken.num_steps, items[0].spoken.num_steps
                                    + items[1].spoken.num_steps) % 600)  # fmt: skip


def test_a_row_is_the_same_in_a_batch_and_alone(
    data: TokenData, speech: SpeechData, model: TokenModel
) -> None:
    items = [data.item(spoken) for spoken in speech.all]
    batch, alone = data.batch(items), data.batch(items[2:])
    together, _ = hidden_of(model, batch, batch.codes, ())
    single, attention = hidden_of(model, alone, alone.codes, [(1, 0)])
    count = single.shape[1]
    assert torch.allclose(together[2, :count], single[0], atol=1e-5)
    assert attention[0].shape == (1, count, int(alone.prompt_lengths[0]) + count - 1)


def test_the_guided_loss_is_small_where_the_head_looks_at_the_word(
    data: TokenData, speech: SpeechData
) -> None:
    batch = data.batch([data.item(spoken) for spoken in speech.all])
    rows, steps = batch.aligned.shape
    positions = 80
    right = torch.full((rows, steps + 1, positions), -9.0)
    right[:, :-1].scatter_(2, batch.aligned.clamp(min=0)[..., None], -0.01)
    wrong = torch.full_like(right, -9.0)
    assert float(guided_loss([right], batch)) == pytest.approx(0.01)
    assert float(guided_loss([right, wrong], batch)) == pytest.approx((0.01 + 9) / 2)


def test_guesses_replace_the_first_stage_only(
    data: TokenData, speech: SpeechData, model: TokenModel
) -> None:
    torch.manual_seed(2)
    batch = data.batch([data.item(spoken) for spoken in speech.all])
    fed = with_guesses(model, batch, np.random.default_rng(5))
    assert (fed[..., list(FINE)] == batch.codes[..., list(FINE)]).all()
    assert (fed[..., list(COARSE)] != batch.codes[..., list(COARSE)]).any()
    assert int(fed.max()) < END


def test_some_rows_are_wholly_the_models_own(
    data: TokenData, speech: SpeechData, model: TokenModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def neutral(model: TokenModel, batch: Batch, fed: torch.Tensor, rng: Any) -> torch.Tensor:
        passes.append(fed)
        return torch.full_like(batch.codes, -1)

    passes: list[torch.Tensor] = []
    monkeypatch.setattr(token_training, "_guesses", neutral)
    batch = data.batch([data.item(spoken) for spoken in speech.all] * 20)
    fed = with_guesses(model, batch, np.random.default_rng(5))
    own = (fed == -1).float().mean(dim=(1, 2))
    assert 0 < int((own == 1).sum()) < len(own)
    assert passes[0] is batch.codes
    assert len(passes) > 1
    assert all((again == -1).all() for again in passes[1:])


def test_batches_are_drawn_from_all_teachers_and_fit(data: TokenData) -> None:
    rng = np.random.default_rng(1)
    batches = [data.draw(300, rng) for _ in range(20)]
    assert all(sum(item.length for item in batch.items) <= 300 for batch in batches)
    teachers = {item.spoken.utterance.teacher for batch in batches for item in batch.items}
    assert teachers == set(TEXTS)


def test_a_copy_is_asked_for_word_by_word(data: TokenData, model: TokenModel) -> None:
    loss, losses = CopyTask(data, model).loss(200, np.random.default_rng(1), [(1, 1)])
    assert loss.requires_grad
    # an untrained model knows nothing: as many nats as there are ids
    assert losses["text"] == pytest.approx(np.log(model.sizes.num_text_tokens), rel=0.2)


def test_the_sign_of_one_direction_chooses_the_english_voice() -> None:
    speakers, rng = Speakers(64, 3), np.random.default_rng(1)
    for teacher, side in SIDES.items():
        own = speakers.own(teacher)
        other = speakers.own("rms" if teacher == "slt" else "slt")
        drawn = np.stack([speakers.random(teacher, rng) for _ in range(200)])
        assert own @ drawn.mean(axis=0) > other @ drawn.mean(axis=0)
        assert side * (drawn @ speakers.own("slt")).mean() > 0
    assert {voice.teacher for voice in VOICES} == speakers.vectors.keys()
    assert all(v.dtype == np.float16 and v.shape == (64,) for v in speakers.vectors.values())


def test_only_a_language_s_first_teacher_speaks_without_a_speaker() -> None:
    speakers, rng = Speakers(64, 3), np.random.default_rng(1)
    drawn = {teacher: [speakers.draw(teacher, rng) for _ in range(100)] for teacher in TEXTS}
    assert any(vector is None for vector in drawn["slt"])
    assert any(vector is None for vector in drawn["cmn"])
    assert not any(vector is None for vector in drawn["rms"])
    lengths = [np.linalg.norm(v) for vectors in drawn.values() for v in vectors if v is not None]
    assert lengths == pytest.approx([1.0] * len(lengths), abs=2e-3)


def test_the_nearest_recording_is_found_whatever_its_pace() -> None:
    rng = np.random.default_rng(1)
    candidates = [rng.standard_normal((n, 8)).astype(np.float32) for n in (30, 44, 38)]
    slower = np.repeat(candidates[2], 2, axis=0)
    assert nearest(slower, [np.repeat(c, 2, axis=0) for c in candidates]) == 2
    assert distances(candidates[1], candidates)[1] == 0


@pytest.mark.parametrize(
    "settings",
    [FULL, QUICK, going_on(FULL), going_on(QUICK)],
    ids=lambda settings: str(settings.name),
)
def test_a_run_reaches_guesses_and_discriminators(settings: Settings) -> None:
    assert settings.gpt.steps > settings.sampling_from
    assert settings.vocos.steps > settings.adversarial_from
