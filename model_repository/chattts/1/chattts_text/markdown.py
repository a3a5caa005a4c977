"""Markdown: keep what a reader sees, drop the marks.

markdown-it-py parses (loaded when first needed); the visible text that it finds is looked up in the
source from front to back, and what lies between is left out. A heading, paragraph or list item ends
with a blank line, the cells of a table are parted by commas. Code blocks are left out with a
warning; images are read by their description.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from .aligned import Edit
from .context import Context

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_LOOKS_LIKE_MARKDOWN = re.compile(
    r"^ {0,3}(?:#{1,6} +\S|```|~~~|> ?\S|\|?(?: *:?-{2,}:? *\|)+|[-*+] +\S.*\n+ {0,3}[-*+] +\S)"
    r"|\*\*[^\s*](?:[^*\n]{0,200}[^\s*])?\*\*|!?\[[^\]\n]{1,200}\]\([^()\s]{1,500}\)|`[^`\n]{1,200}`",
    re.MULTILINE,
)
_LEFT_STARS = re.compile(r"\*{2,3}")
"""Stars beside Chinese punctuation, which the parser's rules for word ends do not take."""
_FOOTNOTE = re.compile(
    r"^( {0,3})\[(?=[^\]\n]{1,40}\]:(?![ \t]*(?:<|/|#|[a-z]+:|[\w-]+\.[\w.-]*[a-z])))", re.MULTILINE
)
_HIDDEN_FOOTNOTE = r"\1("
"""As long; the parser would take the text of a footnote for the address of a link."""
_PRODUCT = re.compile(r"(?<=[0-9])\*(?=[0-9])")
"""The star of 2*3*4 is a sign of arithmetic, whatever the parser's rules say."""
_TASK = re.compile(r"\[[ xX]\]\s")
_BLOCK_ENDS = frozenset({"heading_close", "paragraph_close", "tr_close"})
_CODE_BLOCKS = frozenset({"fence", "code_block"})
_BLOCK_END = "\n\n"
_CELL_END = "，"
_NUMBER_END = "、"


class _Piece(NamedTuple):
    """What a reader sees, in order, or what parts it."""

    text: str
    start: int
    """Not before this place in the source."""
    end: int
    """Nor after this one."""
    is_written: bool = True
    """Whether the text stands in the source; else it is put in."""
    note: str = ""
    """Not empty: the source from start to end is left out, with this note."""


def stage(text: str, context: Context) -> Iterable[Edit]:
    """See above."""
    wanted = context.switches.input_format
    if wanted == "plain" or (wanted == "auto" and not _LOOKS_LIKE_MARKDOWN.search(text)):
        return
    done, pending = 0, ""
    shown = _PRODUCT.sub("×", _FOOTNOTE.sub(_HIDDEN_FOOTNOTE, text))
    for piece in _pieces(shown):
        if piece.note:
            start = max(done, piece.start)
            yield from _replaced(text, done, start, pending)
            yield Edit(start, max(start, piece.end), "", piece.note)
            done, pending = max(start, piece.end), _BLOCK_END
            continue
        found = (
            shown.find(piece.text, max(done, piece.start), piece.end) if piece.is_written else -1
        )
        if found < 0:
            pending += piece.text
            continue
        yield from _replaced(text, done, found, pending)
        done, pending = found + len(piece.text), ""
    yield from _replaced(text, done, len(text), pending)


def _replaced(text: str, start: int, end: int, replacement: str) -> Iterator[Edit]:
    if text[start:end] != replacement:
        yield Edit(start, end, replacement)


def _pieces(text: str) -> Iterator[_Piece]:
    line_starts = [0, *(match.end() for match in re.finditer("\n", text)), len(text)]
    is_first_cell = True
    for token in _parser().parse(text):
        start, end = _place(token, line_starts)
        if token.type in _CODE_BLOCKS:
            yield _Piece("", start, end, note="dropped_markup")
        elif token.type == "list_item_open" and token.info:
            yield _Piece(token.info, start, end)
            yield _Piece(_NUMBER_END, start, end, is_written=False)
        elif token.type == "inline":
            yield from _inline(token.children or [], start, end)
        elif token.type in _BLOCK_ENDS:
            yield _Piece(_BLOCK_END, start, end, is_written=False)
        elif token.type == "tr_open":
            is_first_cell = True
        elif token.type in ("td_open", "th_open"):
            if not is_first_cell:
                yield _Piece(_CELL_END, start, end, is_written=False)
            is_first_cell = False


def _inline(tokens: "Sequence[Token]", start: int, end: int) -> Iterator[_Piece]:
    for token in tokens:
        if token.type == "image":
            yield from _inline(token.children or [], start, end)
        elif token.type in ("softbreak", "hardbreak"):
            yield _Piece("\n", start, end)
        elif token.info == "entity":
            yield _Piece(token.markup, start, end)  # clean.py decodes it, once
        elif token is tokens[0] and _TASK.match(token.content):
            yield _Piece(token.content[len("[x] ") :], start, end)
        elif token.content and not _LEFT_STARS.fullmatch(token.content):
            yield _Piece(token.content, start, end)


def _place(token: "Token", line_starts: list[int]) -> tuple[int, int]:
    """Return the characters from the first to the last line of a block."""
    first, last = token.map or (0, len(line_starts) - 1)
    most = len(line_starts) - 1
    return line_starts[min(first, most)], line_starts[min(last, most)]


@cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    return parser.disable("text_join")  # joined text would not be found in the source
