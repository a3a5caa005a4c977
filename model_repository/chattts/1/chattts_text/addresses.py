"""Web and mail addresses, network hosts, files and paths: read in English, sign by sign.

They are found before anything else, so that no rule for numbers or abbreviations cuts them.
"""

import re
from collections.abc import Iterator

from .acronyms import read_token
from .aligned import Edit
from .context import Context
from .english_numbers import digits
from .language import HAN

_SIGNS = {
    ".": "dot",
    "/": "slash",
    "\\": "backslash",
    "_": "underscore",
    "-": "dash",
    ":": "colon",
    "~": "tilde",
    "?": "question mark",
    "=": "equals",
    "&": "and",
    "%": "percent",
    "#": "hash",
    "+": "plus",
    "@": "at",
    "*": "star",
    ",": "comma",
    ";": "semicolon",
    "!": "exclamation mark",
    "$": "dollar",
    "'": "apostrophe",
    "(": "open paren",
    ")": "close paren",
    "[": "open bracket",
    "]": "close bracket",
}
_PIECE = re.compile(r"[A-Za-z0-9]+|[^A-Za-z0-9]")

_TLD = (
    "com|org|net|edu|gov|mil|int|info|biz|io|ai|co|cn|uk|de|fr|jp|ru|kr|tw|hk|eu|au|ca|ch|nl|se|es|br|"
    "dev|app|xyz|tech|site|online|store|shop|cloud|blog|tv|cc"
)
_WORD_TLD = "me|to|ly|be|gl|so|us|it|in|is|gg|sh|im|fm"
"""Top-level domains that may be a word after a period without a space: only with a path."""

_EXTENSION = (
    "py|pyi|ipynb|txt|md|rst|json|jsonl|ya?ml|toml|ini|cfg|conf|js|mjs|ts|tsx|jsx|vue|html?|css|scss|"
    "pdf|docx?|xlsx?|pptx?|csv|tsv|png|jpe?g|gif|svg|webp|bmp|ico|mp[34]|wav|flac|ogg|m4a|mov|avi|mkv|"
    "zip|tar|gz|tgz|bz2|xz|7z|rar|exe|dll|so|dmg|apk|iso|log|sh|bat|ps1|c|h|cc|cpp|hpp|java|go|rs|rb|"
    "php|swift|kt|sql|db|xml|proto|pbtxt|onnx|pt|pth|bin|safetensors|lock|env|whl|deb|rpm"
)
_LABELS = r"(?:[A-Za-z0-9-]+\.)+"
_PATH = r"[A-Za-z0-9_.~!$&'()*+,;=:@%/?#\[\]-]"
_REST = rf"(?P<rest>[/?#](?:{_PATH}*[A-Za-z0-9_/=&#~$%+-])?)?"
_PORT = r"(?::(?P<port>[0-9]{1,5})(?![0-9]))?"
_NAME = r"[A-Za-z0-9_.+@%-]"

_DOMAIN = (
    rf"{_LABELS}(?:(?:{_TLD})(?![A-Za-z0-9-]|\.[A-Za-z0-9])|(?:{_WORD_TLD})(?=/[A-Za-z0-9]))"
    r"|localhost(?=[:/]|\b)"
)
_WEB = re.compile(
    r"(?<![A-Za-z0-9_.@/-])(?:"
    r"(?P<head>(?:https?|ftp|wss?|grpcs?|git|ssh)://(?:[A-Za-z0-9._~%!$&*+,;=:-]*@)?(?:www\.)?)"
    rf"(?P<host>[A-Za-z0-9.-]*[A-Za-z0-9]){_PORT}{_REST}"
    rf"|(?P<www>(?i:www\.))(?P<host2>{_LABELS}[A-Za-z]{{2,}}){_PORT.replace('port', 'port2')}"
    rf"{_REST.replace('rest', 'rest2')}"
    rf"|(?P<host3>{_DOMAIN}){_PORT.replace('port', 'port3')}{_REST.replace('rest', 'rest3')}"
    r")"
)
_MAIL = re.compile(
    r"(?<![A-Za-z0-9._%+-])(?P<mailto>mailto:)?(?P<mail>[A-Za-z0-9][A-Za-z0-9._%+-]*@"
    rf"{_LABELS}[A-Za-z]{{2,}}(?![A-Za-z0-9]))"
)
_FILE = re.compile(
    r"(?<![A-Za-z0-9_.@/\\:~<+%-])(?:"
    rf"file://(?:/{_NAME}*[A-Za-z0-9_])+"
    rf"|(?:~|\.{{1,2}})/(?:{_NAME}+/)*{_NAME}*[A-Za-z0-9_]/?"
    rf"|/(?:{_NAME}+/)+{_NAME}*[A-Za-z0-9_]/?"
    rf"|/{_NAME}+\.(?:{_EXTENSION})(?![A-Za-z0-9])"
    rf"|[A-Za-z]:\\(?:[A-Za-z0-9_.+@%~-]+\\)*[A-Za-z0-9_.+@%~-]*[A-Za-z0-9_]\\?"
    rf"|(?=[0-9.-]*[A-Za-z_])(?:{_NAME}+/)*{_NAME}+\.(?:{_EXTENSION})(?![A-Za-z0-9]|\.[A-Za-z0-9])"
    rf"|(?<![^\s(（\"'“，。：])\.(?:{_EXTENSION.upper()})(?![A-Za-z0-9])"
    rf"|(?<=[{HAN}])\.(?:{_EXTENSION})(?![A-Za-z0-9]|\.[A-Za-z0-9])"
    r"|(?<![^\s(（\"'“，。：])\.[a-z][a-z0-9_]{2,}(?![A-Za-z0-9])"
    r")"
)
_ADDRESS = re.compile(r"[./\\@]")


def edits(text: str, context: Context) -> Iterator[Edit]:
    """Return in order what to change in the addresses of a text.

    Args:
        text: The whole text.
        context: `switches.links` says how much of a web address is read: its host, all of it, or
            nothing. What is left out is noted as `dropped_link`.
    """
    if not _ADDRESS.search(text):
        return
    found: list[tuple[int, int, list[Edit]]] = []
    for match in _MAIL.finditer(text):
        found.append((*match.span(), _mail(text, match)))
    for match in _WEB.finditer(text):
        found.append((*match.span(), list(_web(text, match, context.switches.links))))
    for match in _FILE.finditer(text):
        found.append((*match.span(), [_read(text, *match.span())]))
    reached = 0
    for start, end, changes in sorted(found, key=lambda one: (one[0], -one[1])):
        if start >= reached:
            yield from changes
            reached = end


def _mail(text: str, match: re.Match[str]) -> list[Edit]:
    read = _read(text, *match.span("mail"))
    return [Edit(*match.span("mailto"), "", "dropped_link"), read] if match["mailto"] else [read]


def _web(text: str, match: re.Match[str], links: str) -> Iterator[Edit]:
    start, end = match.span()
    if links == "omit":
        yield Edit(start, end, "", "dropped_link")
        return
    if links == "full":
        yield _read(text, start, end)
        return
    kind = "" if match["head"] else "2" if match["www"] else "3"
    host_start, host_end = match.span(f"host{kind}")
    if match[f"port{kind}"]:
        host_end = match.end(f"port{kind}")
    if start < host_start:
        yield Edit(start, host_start, "", "dropped_link")
    words = read_address(text[host_start:host_end])
    yield Edit(host_start, host_end, words)
    if host_end < end:
        yield Edit(host_end, end, "", "dropped_link")


def _read(text: str, start: int, end: int) -> Edit:
    return Edit(start, end, read_address(text[start:end]))


_NETWORK = re.compile(r"(?:[0-9]{1,3}\.){3}[0-9]{1,3}")


def read_address(address: str) -> str:
    """Read an address or a part of one, every sign by its name."""
    network = _NETWORK.match(address)
    said = []
    if network:
        said = [" dot ".join(digits(part) for part in network[0].split("."))]
        address = address[network.end() :]
    for piece in _PIECE.findall(address):
        is_label = len(piece) == 3 and piece.isdigit()
        said.append(
            digits(piece)
            if is_label
            else read_token(piece)
            if piece.isalnum()
            else _SIGNS.get(piece, "")
        )
    return " ".join(word for word in said if word)
