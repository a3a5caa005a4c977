"""Characters that the model does not know: one that sounds the same, or a warning.

After this stage the vocabulary has everything but punctuation, which spacing.py puts in order. Han
get a homophone. Letters of scripts that the model was not trained on follow the switch
`on_unsupported`, even where the vocabulary has them. Words longer than a token model's longest
word are parted. What is left out leaves a space, so that its neighbours do not grow together.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator

from .aligned import Edit
from .clean import parted
from .context import PLACEHOLDER, Context
from .homophones import homophone
from .language import HAN
from .marks import UNHEARD, WRITTEN

_READABLE = rf"A-Za-z0-9\s{HAN}{PLACEHOLDER}{re.escape(''.join({*WRITTEN, *UNHEARD}))}"
_FOREIGN = re.compile(rf"[^{_READABLE}]")
_HAN = re.compile(rf"[{HAN}]")
_IGNORED = re.compile(rf"[\s{PLACEHOLDER}{re.escape(''.join({*WRITTEN, *UNHEARD}))}]+")
_MAX_SHOWN = 20


class UnsupportedScriptError(ValueError):
    """A text has letters that the model does not read, and the caller wants to know.

    Args:
        script: Name of the script.
        letters: The letters.
        position: Where they begin, in characters.
    """

    def __init__(self, script: str, letters: str, position: int) -> None:
        self.script, self.letters, self.position = script, letters, position
        super().__init__(
            f"text: {letters[:_MAX_SHOWN]!r} at character {position} is {script}; allowed: Chinese "
            "and Latin letters, or on_unsupported skip or spell"
        )


def stage(text: str, context: Context) -> Iterable[Edit]:
    """See above.

    Raises:
        UnsupportedScriptError: The text has letters of another script, and the switch
            `on_unsupported` is "error".
    """
    foreign = _FOREIGN.search(text)
    if foreign:
        yield from _foreign(text, foreign.start(), context)
    yield from parted(text)
    bare = _IGNORED.sub("", text) if not foreign else ""
    if foreign or not context.vocabulary.has(bare):
        yield from _unknown(text, context)


def _foreign(text: str, start: int, context: Context) -> Iterator[Edit]:
    """Yield edits for what is neither Han nor ASCII letter, digit, space or mark."""
    position = start
    while match := _FOREIGN.search(text, position):
        position = match.start()
        script = _script(text[position])
        if script is None or not context.switches.normalize:
            if _is_surrogate(text[position]) or not context.vocabulary.has(text[position]):
                yield Edit(position, position + 1, " ", "unreadable")
            position += 1
            continue
        end = position + 1
        while end < len(text) and _script(text[end]) in (script, "Inherited"):
            end += 1
        yield _unsupported(text, position, end, script, context)
        position = end


def _unsupported(text: str, start: int, end: int, script: str, context: Context) -> Edit:
    letters, wanted = text[start:end], context.switches.on_unsupported
    if script == "Latin":
        return Edit(start, end, _spelled(letters), "spelled_script")
    if wanted == "error":
        raise UnsupportedScriptError(script, letters, start)
    if wanted == "skip":
        return Edit(start, end, " ", "dropped_script")
    return Edit(start, end, f" {_spelled(letters)} ", "spelled_script")


def _spelled(letters: str) -> str:
    from anyascii import anyascii

    return re.sub(r"[^A-Za-z\s]+", "", anyascii(letters))


def _script(character: str) -> str | None:
    """Name the script of a letter that is not plain; None: it is no letter."""
    if _FOREIGN.match(character) is None:
        return None
    category = unicodedata.category(character)
    if category[0] == "M":
        return "Inherited"
    if category[0] != "L":
        return None
    name = (
        unicodedata.name(character, "unknown").replace("FULLWIDTH ", "").replace("HALFWIDTH ", "")
    )
    return name.split()[0].split("-")[0].capitalize()


def _is_surrogate(character: str) -> bool:
    return "\ud800" <= character <= "\udfff"


def _unknown(text: str, context: Context) -> Iterator[Edit]:
    """Yield edits for Han, and plain letters and digits, that the vocabulary lacks."""
    has = context.vocabulary.has
    unknown = {
        character: ""
        for character in set(text)
        if not (_IGNORED.match(character) or _FOREIGN.match(character) or has(character))
    }
    if not unknown:
        return
    if context.switches.normalize:
        for character in unknown:
            if _HAN.match(character):
                unknown[character] = homophone(character, context.vocabulary) or ""
    for match in re.finditer(f"[{re.escape(''.join(unknown))}]", text):
        spoken = unknown[match[0]]
        yield Edit(*match.span(), spoken or " ", "homophone" if spoken else "unreadable")
