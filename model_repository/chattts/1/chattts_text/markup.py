"""Control tokens, forced readings, pauses, and which markup is honoured, left out or refused.

Everything here is taken out of the text first and is one placeholder from then on, so no later
rule can move it, and nothing that a later stage makes can become a token. A backslash before any
of it makes it ordinary text. Nothing is expanded and nothing outside the text is read.
"""

import re
from collections.abc import Iterable, Iterator

from . import ssml
from .aligned import Edit
from .context import PLACEHOLDER, Context, Token
from .homophones import readings, syllable, with_reading
from .language import HAN
from .tokens import TEXT_TOKENS

_SILENT = r"(?P<name_of_silent>script|style|svg|iframe|noscript)"
"""Elements whose content is not text."""
_MARKUP = re.compile(
    rf"(?P<private>[{PLACEHOLDER}])"
    r"|(?P<escape>\\)?(?:"
    rf"(?P<token>{'|'.join(map(re.escape, TEXT_TOKENS))})"
    rf"|\{{(?P<written>[{HAN}]{{1,8}})\|(?P<reading>[^{{}}<>|\n]{{1,80}})\}}"
    r"|(?P<footnote>\[\^?(?:\d{1,3}(?:\s?[-–,，、;；]\s?\d{1,3}){0,8}|[注图表]\s?\d{0,3}|注释|来源请求"
    r"|citation needed|note \d{1,3}|[a-z])\])"
    r"|(?P<comment><!--(?:(?!-->|<!--)[\s\S])*-->)"
    rf"|(?P<silent>(?i:<{_SILENT}(?=[\s>/])[^<>]*>"
    r"(?:(?!</?(?P=name_of_silent)[\s>/])[\s\S])*</(?P=name_of_silent)\s*>))"
    rf"|(?P<tag>{ssml.TAG}))"
)
_HTML = re.compile(
    "a|abbr|article|aside|audio|b|big|blockquote|body|button|caption|center|cite|code|del|details|"
    "desc|em|emphasis|figcaption|figure|font|footer|form|head|header|html|i|iframe|img|input|ins|"
    "kbd|label|lang|link|main|mark|meta|nav|noscript|option|phoneme|pre|prosody|q|s|samp|say-as|"
    "script|section|select|small|source|span|speak|strike|strong|style|sub|summary|sup|svg|tbody|"
    "textarea|tfoot|thead|title|tt|u|var|video|voice|wbr"
)
_CELL = re.compile("td|th")
_LINE = re.compile("br|dd|dt|li|tr")
_PARAGRAPH = re.compile("div|dl|h[1-6]|hr|ol|p|table|ul")
_DROPPED = "dropped_markup"


def stage(text: str, context: Context) -> Iterable[Edit]:
    """See above.

    Raises:
        ValueError: Inside <speak> an element that is not allowed, or one that is not closed; a
            <break> whose length is not allowed.
    """
    if not ssml.begins(text):
        return _edits(text, context, is_ssml=False)
    elements = ssml.read(text, context)
    return [*elements, *_outside(_edits(text, context, is_ssml=True), sorted(elements))]


def _outside(edits: Iterator[Edit], taken: list[Edit]) -> Iterator[Edit]:
    """Yield the edits that touch none of `taken`; both are in order."""
    index = 0
    for edit in edits:
        while index < len(taken) and taken[index].end <= edit.start:
            index += 1
        if index == len(taken) or edit.end <= taken[index].start:
            yield edit


def _edits(text: str, context: Context, is_ssml: bool) -> Iterator[Edit]:
    for match in _MARKUP.finditer(text):
        start, end = match.span()
        if match["private"]:
            yield Edit(start, end, "", "dropped_control")
        elif match["escape"]:
            yield Edit(start, start + 1, "")
        elif match["token"]:
            yield Edit(start, end, context.placeholder(Token(match["token"])))
        elif match["written"]:
            yield _forced(match, context)
        elif match["footnote"]:
            if not context.switches.footnotes:
                yield Edit(start, end, "", "dropped_footnote")
            elif match[0][1] == "^":
                yield Edit(start + 1, start + 2, "")
        elif not is_ssml:
            yield from _tag(match, context)


def _forced(match: re.Match[str], context: Context) -> Edit:
    """Put the homophones of a forced reading in place of what is written."""
    written, wanted = match["written"], re.split(r"[\s,，'’·-]+", match["reading"].strip())
    if len(written) == len(wanted):
        pairs = zip(written, wanted, strict=True)
        spoken = [_sounding(character, one, context) for character, one in pairs]
        if None not in spoken:
            tokens = "".join(context.placeholder(Token(one or "")) for one in spoken)
            return Edit(*match.span(), tokens)
    return Edit(*match.span(), written, "unknown_reading")


def _sounding(character: str, written: str, context: Context) -> str | None:
    """Return a character that is read as `written` says; without a tone, as the first that fits."""
    reading = syllable(written)
    if reading is None:
        return None
    known = readings(character)
    if reading not in known and not re.search("[0-9]", written) and reading.endswith("5"):
        reading = next((one for one in known if one[:-1] == reading[:-1]), reading)
    if known[:1] == [reading] and context.vocabulary.has(character):
        return character
    return with_reading(reading, context.vocabulary, with_rare=True)


def _tag(match: re.Match[str], context: Context) -> Iterator[Edit]:
    """Read a tag outside <speak>: a pause, or HTML that is left out; anything else is prose."""
    start, end = match.span()
    if not match["tag"]:
        yield Edit(start, end, "", _DROPPED)
        return
    name, is_closing = match["name"].lower(), match["kind"] == "/"
    if name == "break":
        yield Edit(start, end, "" if is_closing else ssml.pause(match[0], match["rest"], context))
    elif _CELL.fullmatch(name):
        yield Edit(start, end, "\n" if is_closing else "", _DROPPED)
    elif _LINE.fullmatch(name):
        yield Edit(start, end, "\n", _DROPPED)
    elif _PARAGRAPH.fullmatch(name):
        yield Edit(start, end, "\n\n", _DROPPED)
    elif _HTML.fullmatch(name):
        yield Edit(start, end, "", _DROPPED)
