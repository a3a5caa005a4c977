"""The options that commands share, as dataclasses; `flattened` makes a command line of them."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from typer import Argument, BadParameter, Context, Option

from .._client import ChatTTSClient
from .._exceptions import ChatTTSError
from .._settings import DEFAULT_MAX_RETRIES, DEFAULT_TIMEOUT_S, DEFAULT_URLS
from .._tls import Tls
from .._types import SpeechOptions
from .inputs import SPEED, SPEEDS, check_speed, decode, parse_switches

_COMPLETION_LIMIT_S = 1.0
_SERVER = "Server"
_SPEECH = "Speech"
_SAMPLING = "Sampling"

FLAG = ""
"""Shown as the value of an option that has none."""
AsJson = Annotated[
    bool, Option("--json", metavar=FLAG, help="Print the result as one line of JSON.")
]


@dataclass(frozen=True)
class Server:
    """Where the server is and how to reach it."""

    url: Annotated[
        str | None,
        Option(
            envvar="CHATTTS_URL",
            metavar="HOST:PORT",
            help=f"Default: {DEFAULT_URLS['grpc']}, or {DEFAULT_URLS['http']} over HTTP.",
            rich_help_panel=_SERVER,
        ),
    ] = None
    http: Annotated[
        bool,
        Option(
            "--http",
            metavar=FLAG,
            help="HTTP instead of gRPC; no streams.",
            rich_help_panel=_SERVER,
        ),
    ] = False
    tls: Annotated[
        bool, Option("--tls", metavar=FLAG, help="Encrypt.", rich_help_panel=_SERVER)
    ] = False
    ca_file: Annotated[
        Path | None,
        Option(
            metavar="PEM", help="Trust these certificates; implies --tls.", rich_help_panel=_SERVER
        ),
    ] = None
    header: Annotated[
        list[str] | None,
        Option(metavar="NAME:VALUE", help="Send with every call.", rich_help_panel=_SERVER),
    ] = None
    timeout: Annotated[
        float,
        Option(metavar="SECONDS", help="Limit per call, 0 = none.", rich_help_panel=_SERVER),
    ] = DEFAULT_TIMEOUT_S
    retries: Annotated[
        int, Option(metavar="N", help="Tries after the first.", rich_help_panel=_SERVER)
    ] = DEFAULT_MAX_RETRIES

    @property
    def headers(self) -> dict[str, str]:
        """Names and values of --header.

        Raises:
            BadParameter: one has no colon, or is there twice.
        """
        found: dict[str, str] = {}
        for name, colon, value in (entry.partition(":") for entry in self.header or ()):
            if not name.strip() or not colon:
                raise BadParameter(f"{name!r} is not NAME:VALUE", param_hint="--header")
            if name.strip() in found:
                raise BadParameter(f"{name.strip()!r} is there twice", param_hint="--header")
            found[name.strip()] = value.strip()
        return found

    @property
    def is_encrypted(self) -> bool:
        """Whether --tls was given, or what implies it."""
        return self.tls or self.ca_file is not None

    def open(self, *, retries: int | None = None, metrics_url: str | None = None) -> ChatTTSClient:
        """A client as asked; nothing is sent yet.

        Args:
            retries: other than asked.
            metrics_url: HOST:PORT of the metrics; None: the usual port.

        Raises:
            ValueError: an argument is malformed.
            ImportError: an extra is missing.
        """
        if not 0 <= self.timeout < math.inf:
            message = f"{self.timeout:g} is no number of seconds from 0"
            raise BadParameter(message, param_hint="--timeout")
        if self.retries < 0:
            raise BadParameter(f"{self.retries} is below 0", param_hint="--retries")
        return ChatTTSClient(
            self.url,
            transport="http" if self.http else "grpc",
            timeout_s=self.timeout or None,
            tls=Tls(ca_file=self.ca_file) if self.ca_file else self.tls,
            headers=self.headers,
            max_retries=self.retries if retries is None else retries,
            metrics_url=metrics_url,
        )


@dataclass(frozen=True)
class TextSource:
    """What to say."""

    text: Annotated[
        str | None, Argument(metavar="TEXT", help="What to say; - reads standard input.")
    ] = None
    file: Annotated[
        Path | None, Option("--file", "-f", metavar="PATH", help="Read the text from a file.")
    ] = None

    def read(self) -> str:
        """The text, from where it was said to be.

        Raises:
            BadParameter: no source, or two.
            OSError: the file cannot be read.
            ValueError: it is not UTF-8.
        """
        if self.text is None and self.file is None:
            raise BadParameter("give a text, - for standard input, or --file", param_hint="TEXT")
        if self.text is not None and self.file is not None:
            raise BadParameter("give a text or --file, not both", param_hint="TEXT")
        if self.file is not None:
            return decode(self.file.read_bytes(), str(self.file))
        text = cast(str, self.text)
        return decode(sys.stdin.buffer.read(), "standard input") if text == "-" else text


def _whole_number(value: str | None) -> str | None:
    if value and not value.isdecimal():
        raise BadParameter(f"{value!r} is not a whole number")
    return value


Language = Annotated[
    Literal["auto", "zh", "en"] | None,
    Option(help="Whose rules read the text.", rich_help_panel=_SPEECH),
]
Switches = Annotated[
    str | None,
    Option(
        metavar="JSON",
        help="""Rare switches, such as '{"trim": true}'.""",
        rich_help_panel=_SPEECH,
    ),
]
ModelVersion = Annotated[
    str | None,
    Option(
        metavar="N",
        help="Which to ask; default: the highest.",
        callback=_whole_number,
        rich_help_panel=_SPEECH,
    ),
]


def complete_voice(ctx: Context, incomplete: str) -> list[tuple[str, str]]:
    """Names and descriptions of the server's voices, for a shell; none if it does not answer."""
    try:
        url = ctx.params.get("url")
        with ChatTTSClient(url, timeout_s=_COMPLETION_LIMIT_S, max_retries=0) as client:
            voices = client.voices()
    except (ChatTTSError, ValueError):
        return []
    return [(one.name, one.description) for one in voices if one.name.startswith(incomplete)]


class _Given:
    """Fields that are options of the protocol; None: the server's default."""

    def given(self) -> SpeechOptions:
        """The options that were given.

        Raises:
            BadParameter: --options is no JSON object.
            ValueError: a wrong --speed.
        """
        values = {field.name: getattr(self, field.name) for field in fields(cast(Any, self))}
        speed, switches = values.pop(SPEED, None), values.pop("options")
        try:
            merged = {} if switches is None else parse_switches(switches)
        except ValueError as error:
            raise BadParameter(str(error), param_hint="--options") from error
        if speed is not None:
            check_speed(speed, "--speed")
            merged = {**merged, SPEED: speed}
        known = {name: value for name, value in values.items() if value is not None}
        return cast(SpeechOptions, {**known, "options": merged} if merged else known)


@dataclass(frozen=True)
class Reading(_Given):
    """How a text is read."""

    language: Language = None
    options: Switches = None
    model_version: ModelVersion = None


@dataclass(frozen=True)
class Speech(_Given):
    """How a text is spoken: every key of `SpeechOptions`."""

    voice: Annotated[
        str | None,
        Option(
            metavar="NAME",
            help="See `chattts voices`.",
            autocompletion=complete_voice,
            rich_help_panel=_SPEECH,
        ),
    ] = None
    language: Language = None
    style: Annotated[
        str | None,
        Option(metavar="TOKENS", help="Such as \\[speed_5]\\[oral_2].", rich_help_panel=_SPEECH),
    ] = None
    speed: Annotated[
        float | None,
        Option(help=f"{SPEEDS}, same pitch.", rich_help_panel=_SPEECH),
    ] = None
    refine: Annotated[
        bool | None,
        Option(
            "--refine", metavar=FLAG, help="The model adds its own pauses.", rich_help_panel=_SPEECH
        ),
    ] = None
    seed: Annotated[
        int | None, Option(help="Same request and seed, same audio.", rich_help_panel=_SPEECH)
    ] = None
    latency: Annotated[
        Literal["exact", "low"] | None,
        Option(help="low: a stream begins sooner.", rich_help_panel=_SPEECH),
    ] = None
    priority: Annotated[
        int | None, Option(help="1 (first) ... 3 (last).", rich_help_panel=_SPEECH)
    ] = None
    deadline_ms: Annotated[
        int | None,
        Option(help="The server stops with what it has by then.", rich_help_panel=_SPEECH),
    ] = None
    queue_deadline_ms: Annotated[
        int | None,
        Option(help="It gives up if not begun by then.", rich_help_panel=_SPEECH),
    ] = None
    options: Switches = None
    model_version: ModelVersion = None
    temperature: Annotated[
        float | None, Option(help="0.00001 ... 2.", rich_help_panel=_SAMPLING)
    ] = None
    top_p: Annotated[
        float | None, Option(help="Nucleus mass, up to 1.", rich_help_panel=_SAMPLING)
    ] = None
    top_k: Annotated[int | None, Option(help="Candidates kept.", rich_help_panel=_SAMPLING)] = None
    repetition_penalty: Annotated[
        float | None, Option(help="0.5 ... 2.", rich_help_panel=_SAMPLING)
    ] = None
    min_new_tokens: Annotated[
        int | None, Option(help="Steps before the end is allowed.", rich_help_panel=_SAMPLING)
    ] = None
    max_new_tokens: Annotated[
        int | None, Option(help="Most steps per segment, 1 ... 2048.", rich_help_panel=_SAMPLING)
    ] = None
