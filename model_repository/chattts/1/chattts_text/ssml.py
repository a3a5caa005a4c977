"""The small part of SSML that is honoured: everything else inside <speak> is refused by name."""

import re
from typing import NamedTuple

from .aligned import Edit
from .context import MAX_PAUSE_MS, Context, Token
from .language import HAN, LATIN

ALLOWED = "speak, break, p, s, sub, say-as"
_TEXT_ONLY = frozenset({"sub", "say-as"})
_INTERPRETATIONS = (
    "characters", "spell-out", "digits", "telephone", "cardinal", "ordinal", "date", "time"
)  # fmt: skip
_STRENGTH_MS = {
    "none": 0, "x-weak": 100, "weak": 200, "medium": 400, "strong": 700, "x-strong": 1200
}  # fmt: skip
_BREAK_ALLOWED = (
    f'<break time="…"/> with 0ms … {MAX_PAUSE_MS}ms or 0s … {MAX_PAUSE_MS // 1000}s, or '
    f'<break strength="…"/> with {", ".join(_STRENGTH_MS)}'
)

TAG = r"<(?P<kind>[/!?]?)(?P<name>[A-Za-z][A-Za-z0-9:-]{0,19})(?![^\s/>?])(?P<rest>[^<>]*)>"
"""Regular expression of a tag, with the groups kind, name and rest."""

_BEGIN = re.compile(r"\ufeff?\s*(?:<\?xml[^<>]*\?>\s*)?<speak(?=[\s>/])[^<>]*>")
_ELEMENT = re.compile(rf"<!--(?:(?!-->|<!--)[\s\S])*-->|(?<!\\){TAG}")
_ATTRIBUTE = re.compile(r"\s*([A-Za-z:-]{1,30})\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
_HAN_DIGITS = str.maketrans("0123456789", "零一二三四五六七八九")
_HAN = re.compile(f"[{HAN}]")
_LATIN = re.compile(f"[{LATIN}]")
_TIME = re.compile(r"\+?(\d{1,6}(?:\.\d{1,6})?|\.\d{1,6})(ms|s)")


class _Open(NamedTuple):
    """An element that is not closed yet."""

    name: str
    start: int
    """Where its tag begins."""
    content: int
    """Where its content begins."""
    attributes: dict[str, str]


def begins(text: str) -> bool:
    """Say whether a text is SSML: its first tag is <speak>."""
    return _BEGIN.match(text) is not None


def read(text: str, context: Context) -> list[Edit]:
    """Return edits for all elements of a text that begins with <speak>; they do not overlap.

    Raises:
        ValueError: An element that is not allowed, or not well-formed.
    """
    edits: list[Edit] = []
    stack: list[_Open] = []
    is_mandarin = _is_mandarin(text)
    for match in _ELEMENT.finditer(text):
        start, end = match.span()
        name, kind = match["name"], match["kind"]
        _check_content(stack, name, kind)
        if name is None or (kind == "?" and name == "xml"):
            edits.append(Edit(start, end, ""))
            continue
        if kind in ("!", "?") or name not in ALLOWED.split(", "):
            raise ValueError(
                f"text: <{kind}{name}> is not allowed inside <speak>; allowed: {ALLOWED}"
            )
        if name == "break":
            edits.append(Edit(start, end, "" if kind else pause(match[0], match["rest"], context)))
        elif kind == "/":
            if not stack or stack[-1].name != name:
                expected = f"</{stack[-1].name}>" if stack else "no closing tag"
                raise ValueError(f"text: </{name}> in the wrong place; allowed: {expected} here")
            edits += _closed(text, stack.pop(), start, end, is_mandarin)
        elif not match["rest"].rstrip().endswith("/"):
            stack.append(_Open(name, start, end, _attributes(match["rest"])))
        else:
            edits.append(Edit(start, end, ""))
    if stack:
        name = stack[-1].name
        raise ValueError(f"text: <{name}> is not closed; allowed: </{name}> at its end")
    return edits


def _check_content(stack: list[_Open], name: str | None, kind: str) -> None:
    """Refuse an element or a comment inside an element that holds text only."""
    if stack and stack[-1].name in _TEXT_ONLY and (kind, name) != ("/", stack[-1].name):
        shown = f"<{kind}{name}>" if name else "<!-- -->"
        raise ValueError(f"text: {shown} inside <{stack[-1].name}>; allowed: text without elements")


def pause(tag: str, rest: str, context: Context) -> str:
    """Return the placeholder of a <break>; empty if it has no length.

    Args:
        tag: The whole tag, for messages.
        rest: What follows its name.
        context: Takes the placeholder.

    Raises:
        ValueError: Its length is not allowed.
    """
    attributes = _attributes(rest)
    milliseconds = _STRENGTH_MS["medium"]
    if "time" in attributes:
        match = _TIME.fullmatch(attributes["time"].strip())
        wanted = float(match[1]) * (1000 if match[2] == "s" else 1) if match else -1.0
        if not 0 <= wanted <= MAX_PAUSE_MS:
            raise ValueError(f"text: {_shown(tag)}; allowed: {_BREAK_ALLOWED}")
        milliseconds = round(wanted)
    elif "strength" in attributes:
        if attributes["strength"] not in _STRENGTH_MS:
            raise ValueError(f"text: {_shown(tag)}; allowed: {_BREAK_ALLOWED}")
        milliseconds = _STRENGTH_MS[attributes["strength"]]
    elif rest.strip(" \t\n/"):
        raise ValueError(f"text: {_shown(tag)}; allowed: {_BREAK_ALLOWED}")
    return context.placeholder(Token(pause_ms=milliseconds)) if milliseconds else ""


def _is_mandarin(text: str) -> bool:
    """Say whether numbers are read in Mandarin: there is Han, or no letter at all."""
    words = _ELEMENT.sub("", text)
    return bool(_HAN.search(words)) or not _LATIN.search(words)


def _closed(text: str, element: _Open, start: int, end: int, is_mandarin: bool) -> list[Edit]:
    """Return the edits for an element whose closing tag is `text[start:end]`."""
    opening = Edit(element.start, element.content, "")
    content = text[element.content : start]
    if element.name == "sub":
        alias = element.attributes.get("alias")
        if not alias:
            raise ValueError('text: <sub> without an alias; allowed: <sub alias="…">')
        return [Edit(element.start, end, alias)]
    if element.name == "say-as":
        wanted = element.attributes.get("interpret-as", "")
        before = text[max(0, element.start - 1) : element.start]
        spoken = _interpreted(content, wanted, is_mandarin, before)
        middle = [Edit(element.content, start, spoken)] if spoken != content else []
        return [opening, *middle, Edit(start, end, "")]
    return [opening, Edit(start, end, "\n\n" if element.name in ("p", "s") else "")]


def _interpreted(content: str, interpretation: str, is_mandarin: bool, before: str) -> str:
    """Rewrite the content of a <say-as> so that the rules for numbers read it as wanted.

    Args:
        content: The text between the tags.
        interpretation: What it is.
        is_mandarin: Whether numbers are read in Mandarin.
        before: The character before the element.
    """
    if interpretation not in _INTERPRETATIONS:
        allowed = ", ".join(_INTERPRETATIONS)
        raise ValueError(
            f"text: <say-as> with interpret-as {interpretation!r:.40}; allowed: {allowed}"
        )
    if interpretation in ("characters", "spell-out", "digits"):
        spelled = " ".join("".join(content.split()))
        return spelled.translate(_HAN_DIGITS) if is_mandarin else spelled
    if content.strip().isdecimal():
        number = int(content[:30])
        if interpretation == "cardinal":
            return f"{number:,}"
        if interpretation == "ordinal":
            if not is_mandarin:
                return _ordinal(number)
            return content if before == "第" else f"第{number}"
    return content


def _ordinal(number: int) -> str:
    suffixes = {1: "st", 2: "nd", 3: "rd"}
    is_teen = number // 10 % 10 == 1
    return f"{number}{'th' if is_teen else suffixes.get(number % 10, 'th')}"


def _attributes(rest: str) -> dict[str, str]:
    return {name: double or single for name, double, single in _ATTRIBUTE.findall(rest)}


def _shown(tag: str) -> str:
    return tag if len(tag) <= 60 else tag[:60] + "..."
