"""Draws what the voice is taught: sentences of both languages, lists of words, held-out sentences.

Every word is met often: of a handful of candidates the one is taken whose words were drawn least.
Some are lists of random words, some English ones are patched together from pieces of sentences:
both teach words apart from the habits of the templates.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from train_voice.english import ENGLISH
from train_voice.grammar import Grammar
from train_voice.mandarin import MANDARIN

Language = Literal["en", "zh"]
Split = Literal["train", "held_out", "held_out_template"]

TEACHERS: dict[Language, tuple[str, ...]] = {"en": ("slt", "rms"), "zh": ("cmn",)}
"""The teachers of each language, see `teachers`; the first one is the language's default voice."""
GRAMMARS: dict[Language, Grammar] = {"en": ENGLISH, "zh": MANDARIN}

MOST_DRAWS = 100
"""Draws per sentence that is held out, at most."""
CANDIDATES = 6
"""Sentences of which the one with the rarest words is taken."""
KIND_SHARES: dict[Language, tuple[float, float, float]] = {
    "en": (0.6, 0.2, 0.2),
    "zh": (0.7, 0.3, 0.0),
}
"""Sentences, lists of words and patchworks among the training utterances."""

_ENGLISH_WORD = re.compile(r"[a-z]+(?:'[a-z]+)*")
_HAN = re.compile(r"[\u4e00-\u9fff]")
_QUESTION = re.compile(r"(where|what|how|do|can) |.*吗$|请问|.*多少钱$|.*怎么走$")


class CorpusError(ValueError):
    """The templates do not give what is asked of them."""


@dataclass(frozen=True, slots=True)
class Utterance:
    """One sentence to be said by one teacher."""

    text: str
    language: Language
    teacher: str
    split: Split


@dataclass(frozen=True, slots=True)
class KeptBack:
    """What a trained voice never met."""

    held_out: Sequence[Utterance]
    words: frozenset[str]
    """English words and Chinese characters that it knows, of which all its sentences were."""


@dataclass(frozen=True, slots=True)
class CorpusSizes:
    """How much is drawn."""

    sentences: dict[str, int]
    """Training utterances by teacher, at least; `min_counts` may need more."""
    min_counts: dict[str, int]
    """How often every word occurs, at least, by teacher."""
    held_out: int
    """Sentences of known templates per language."""
    held_out_templates: int
    """Sentences of templates that are not trained on, per language."""


def words_of(text: str) -> list[str]:
    """Return the words of an English text or the Han characters of a Mandarin one, in order."""
    return [text[start:end] for start, end in word_places(text)]


def word_places(text: str) -> list[tuple[int, int]]:
    """Return where each of `words_of(text)` begins and ends, in characters."""
    pattern = _HAN if _HAN.search(text) else _ENGLISH_WORD
    return [match.span() for match in pattern.finditer(text)]


def vocabulary(language: Language) -> list[str]:
    """Return all words that the templates of a language can say, sorted."""
    grammar = GRAMMARS[language]
    rng = random.Random(0)
    texts = [*grammar.templates, *(p for phrases in grammar.slots.values() for p in phrases)]
    texts = [grammar.fill(text, rng) for text in texts]
    # makers have no list: what they can say shows in enough of their phrases
    texts += [maker(rng) for maker in grammar.makers.values() for _ in range(2000)]
    return sorted({word for text in texts for word in words_of(text)})


def draw(sizes: CorpusSizes, seed: int, kept: KeptBack | None = None) -> list[Utterance]:
    """Return the whole corpus, the held-out sentences first; the same seed, the same corpus.

    No held-out sentence is among the training sentences, whoever says it and whatever ends it.

    Args:
        sizes: how much of what.
        seed: of what is drawn.
        kept: of the voice that goes on learning. Its held-out sentences are held out again; new
            ones come beside them only if they have words that it does not know.

    Raises:
        CorpusError: the templates have too few different sentences to hold some out.
    """
    utterances: list[Utterance] = []
    for language, teachers in TEACHERS.items():
        rng = random.Random(f"{seed}/{language}")
        held_out = _draw_held_out(language, sizes, rng)
        if kept is not None:
            held_out = _held_out_again(language, held_out, kept)
        taken = {bare(item.text) for item in held_out}
        utterances += held_out
        for teacher in teachers:
            count, goal = sizes.sentences[teacher], sizes.min_counts[teacher]
            texts = _draw_training(language, count, goal, taken, rng)
            utterances += [Utterance(text, language, teacher, "train") for text in texts]
    return utterances


def domain_text(
    language: Language,
    count: int,
    excluded: Collection[str],
    seed: int,
    more_templates: Sequence[str] = (),
) -> list[str]:
    """Return `count` sentences of the training templates without marks, for a language model.

    Args:
        language: of the sentences.
        count: how many; some may be equal.
        excluded: bare sentences that must not be among them.
        seed: the same seed, the same sentences.
        more_templates: used like those of training.
    """
    rng = random.Random(f"{seed}/text/{language}")
    grammar = GRAMMARS[language]
    templates = (*grammar.templates, *more_templates)
    texts: list[str] = []
    while len(texts) < count:
        text = bare(grammar.fill(rng.choice(templates), rng))
        if text not in excluded:
            texts.append(text)
    return texts


def bare(text: str) -> str:
    """Return a text without marks: what two sentences share that say the same words."""
    words = words_of(text)
    return "".join(words) if _HAN.search(text) else " ".join(words)


def _draw_held_out(language: Language, sizes: CorpusSizes, rng: random.Random) -> list[Utterance]:
    grammar, teacher = GRAMMARS[language], TEACHERS[language][0]
    slotted = [template for template in grammar.templates if "{" in template]
    splits: list[tuple[Split, Sequence[str], int]] = [
        ("held_out", slotted, sizes.held_out),
        ("held_out_template", grammar.held_out, sizes.held_out_templates),
    ]
    drawn: dict[str, Utterance] = {}
    for split, templates, count in splits:
        goal = len(drawn) + count
        for _ in range(MOST_DRAWS * count if templates else 0):
            if len(drawn) == goal:
                break
            text = grammar.fill(rng.choice(templates), rng)
            drawn.setdefault(bare(text), Utterance(text, language, teacher, split))
        if len(drawn) < goal:
            raise CorpusError(f"fewer than {count} different sentences of {language} to hold out")
    return list(drawn.values())


def _held_out_again(
    language: Language, drawn: Sequence[Utterance], kept: KeptBack
) -> list[Utterance]:
    sayable = set(vocabulary(language))
    old = [u for u in kept.held_out if u.language == language and sayable >= set(words_of(u.text))]
    new = [u for u in drawn if not kept.words >= set(words_of(u.text))]
    return [*old, *new]


def _draw_training(
    language: Language, count: int, goal: int, taken: Collection[str], rng: random.Random
) -> list[str]:
    grammar = GRAMMARS[language]
    missing = Counter(dict.fromkeys(vocabulary(language), goal))
    parts = _list_parts(language)

    def sentence() -> str:
        return grammar.fill(rng.choice(grammar.templates), rng)

    def word_list() -> str:
        chosen = [_rarest(lambda: rng.choice(parts), missing) for _ in range(rng.randrange(4, 8))]
        return _join(language, list(dict.fromkeys(chosen)), rng)

    def patchwork() -> str:
        pieces = [_piece(sentence(), rng) for _ in range(rng.randrange(2, 4))]
        return " ".join(pieces)

    texts: dict[str, None] = {}
    while len(texts) < count or max(missing.values()) > 0:
        (kind,) = rng.choices((sentence, word_list, patchwork), KIND_SHARES[language])
        text = _rarest(kind, missing)
        marked = text + _end_mark(language, text, rng)
        if bare(text) not in taken and marked not in texts:
            missing.subtract(words_of(text))
            texts[marked] = None
    return list(texts)


def _piece(text: str, rng: random.Random) -> str:
    """Return two to five words in a row of an English text."""
    words, size = words_of(text), rng.randrange(2, 6)
    start = rng.randrange(max(1, len(words) - size + 1))
    return " ".join(words[start : start + size])


def _rarest(make: Callable[[], str], missing: Counter[str]) -> str:
    """Return the candidate whose words are missing most, on average."""

    def need(text: str) -> float:
        words = words_of(text)
        return sum(max(0, missing[word]) for word in words) / len(words)

    return max((make() for _ in range(CANDIDATES)), key=need)


def _list_parts(language: Language) -> list[str]:
    if language == "en":
        return vocabulary("en")
    # a character alone has no certain reading, a phrase has
    texts = [*MANDARIN.templates, *_slot_phrases(MANDARIN), "两点一刻", "十点半", "三分零五"]
    parts = (part for text in texts for part in re.split(r"\{\w+\}|，", text))
    return list(dict.fromkeys(part for part in parts if words_of(part)))


def _join(language: Language, parts: Sequence[str], rng: random.Random) -> str:
    if language == "zh":
        return "，".join(parts[:3])
    return (", " if rng.random() < 0.2 else " ").join(parts)


def _slot_phrases(grammar: Grammar) -> Iterable[str]:
    return (phrase for phrases in grammar.slots.values() for phrase in phrases)


def _end_mark(language: Language, text: str, rng: random.Random) -> str:
    marks = {"en": (".", "?", "!"), "zh": ("。", "？", "！")}[language]
    chance = rng.random()
    if chance < 0.4:
        return ""
    if _QUESTION.match(text) and chance < 0.8:
        return marks[1]
    return marks[2] if chance > 0.95 else marks[0]
