"""A bigram model of the domain in ARPA's format, and its dictionary, for the recogniser.

Absolute discounting: every seen pair gives a little to all words, as often as they follow others.
Any word may follow any other, so the recogniser is not told the answers.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from train_voice.corpus import CorpusError

DISCOUNT = 0.6
START, STOP = "<s>", "</s>"


def arpa(sentences: Iterable[Sequence[str]], vocabulary: Sequence[str]) -> str:
    """Return the ARPA file of a bigram model; every word of `vocabulary` has a chance."""
    pairs: Counter[tuple[str, str]] = Counter()
    for words in sentences:
        marked = [START, *words, STOP]
        pairs.update(zip(marked, marked[1:], strict=False))
    singles: Counter[str] = Counter(dict.fromkeys([*vocabulary, STOP], 1))
    histories: Counter[str] = Counter()
    followers: dict[str, int] = defaultdict(int)
    for (first, second), count in pairs.items():
        singles[second] += count
        histories[first] += count
        followers[first] += 1
    total = sum(singles.values())
    single = {word: count / total for word, count in singles.items()}
    rest = {word: DISCOUNT * followers[word] / histories[word] for word in histories}
    lines = ["\\data\\", f"ngram 1={len(single) + 1}", f"ngram 2={len(pairs)}", "", "\\1-grams:"]
    lines.append(f"-99 {START} {_log(rest.get(START, 1.0))}")
    for word in sorted(single):
        lines.append(f"{_log(single[word])} {word} {_log(rest.get(word, 1.0))}")
    lines += ["", "\\2-grams:"]
    for (first, second), count in sorted(pairs.items()):
        direct = max(0.0, count - DISCOUNT) / histories[first]
        lines.append(f"{_log(direct + rest[first] * single[second])} {first} {second}")
    return "\n".join([*lines, "", "\\end\\", ""])


def dictionary(vocabulary: Iterable[str], known: Mapping[str, Sequence[str]]) -> str:
    """Return the recogniser's dictionary: a line per pronunciation.

    Args:
        vocabulary: the words.
        known: pronunciations by word; the words without an apostrophe stand in for those with.

    Raises:
        CorpusError: words have no pronunciation.
    """
    vocabulary = sorted(vocabulary)
    strange = [word for word in vocabulary if not {word, word.replace("'", "")} & known.keys()]
    if strange:
        raise CorpusError(f"the recognizer cannot know these words: {', '.join(strange)}")
    lines = []
    for word in vocabulary:
        for number, phones in enumerate(known.get(word) or known[word.replace("'", "")]):
            lines.append(f"{word}{f'({number + 1})' if number else ''} {phones}")
    return "\n".join([*lines, ""])


def read_pronunciations(path: Path) -> dict[str, list[str]]:
    """Return the pronunciations in a dictionary of CMU's form."""
    found: dict[str, list[str]] = defaultdict(list)
    for line in path.read_text(encoding="utf-8").splitlines():
        word, _, phones = line.partition(" ")
        found[word.split("(")[0]].append(phones.strip())
    return dict(found)


def _log(chance: float) -> str:
    return f"{math.log10(chance):.4f}"
