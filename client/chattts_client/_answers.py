"""Tensors of a response to results, for gRPC and HTTP alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._exceptions import ProtocolError
from ._json import JsonObject, get, get_list, get_number, get_optional_number, parse_object
from ._protocol import CONTRACT
from ._types import (
    AlignedSpan,
    AudioChunk,
    NormalizedText,
    Samples,
    SpeechWarning,
    Summary,
    TextSegment,
    Timings,
    Voice,
)

Reader = Callable[[str], NDArray[Any] | None]
"""Output name to its array, or None if the response lacks it."""


def read_chunk(read: Reader, index: int) -> AudioChunk:
    """Decode response number `index` of a request.

    Raises:
        ProtocolError: an output or a metadata key is missing or malformed.
    """
    metadata = _read_metadata(read)
    is_final = bool(_scalar(read, "is_final"))
    return AudioChunk(
        samples=_read_samples(read),
        sample_rate=int(_scalar(read, "sample_rate")),
        index=index,
        segment_index=get(metadata, "segment_index", int),
        num_segments=get(metadata, "num_segments", int),
        is_final=is_final,
        summary=read_summary(metadata) if is_final else None,
    )


def read_voices(read: Reader) -> tuple[Voice, ...]:
    """Decode the answer to `voices_request`.

    Raises:
        ProtocolError: the metadata has no well-formed list of voices.
    """
    return tuple(_read_voice(entry) for entry in get_list(_read_metadata(read), "voices", dict))


def read_facts(read: Reader | None) -> JsonObject:
    """Decode the answer to `health_request`, whatever contract it follows.

    Raises:
        ProtocolError: there is none, or its metadata is no object.
    """
    if read is None:
        raise ProtocolError("no response")
    return parse_object(_scalar(read, "metadata"))


def read_json_facts(content: bytes) -> JsonObject:
    """Decode the answer to HEALTH_JSON, as `read_facts`.

    Raises:
        ProtocolError: it is no object, or its metadata is none.
    """
    return parse_object(get(parse_object(content), "metadata", str))


def _read_voice(entry: JsonObject) -> Voice:
    return Voice(
        name=get(entry, "name", str),
        language=get(entry, "language", str),
        description=get(entry, "description", str),
        kind=get(entry, "kind", str),
        languages=get_list(entry, "languages", str),
        gender=get(entry, "gender", str),
        styles=get_list(entry, "styles", str),
        aliases=get_list(entry, "aliases", str),
        auditioned=get(entry, "auditioned", bool),
        license=get(entry, "license", str),
        provenance=get(entry, "provenance", dict),
        sha256=get(entry, "sha256", str),
    )


def read_dry_run(read: Reader) -> NormalizedText:
    """Decode the answer to `dry_run_request`.

    Raises:
        ProtocolError: the metadata is not well-formed.
    """
    return read_prepared(_read_metadata(read))


def read_prepared(prepared: JsonObject) -> NormalizedText:
    """Take a prepared text out of its JSON form, which the text front end itself gives too.

    Raises:
        ProtocolError: a key is missing or malformed.
    """
    return NormalizedText(
        segments=tuple(_read_segment(one) for one in get_list(prepared, "segments", dict)),
        warnings=_read_warnings(prepared),
        alignment=tuple(_read_span(one) for one in get_list(prepared, "alignment", dict)),
        estimated_s=get_number(prepared, "estimated_s"),
    )


def _read_segment(entry: JsonObject) -> TextSegment:
    return TextSegment(
        text=get(entry, "text", str),
        start=get(entry, "start", int),
        end=get(entry, "end", int),
        estimated_s=get_number(entry, "estimated_s"),
        pause_ms=get(entry, "pause_ms", int),
    )


def _read_span(entry: JsonObject) -> AlignedSpan:
    return AlignedSpan(
        start=get(entry, "start", int),
        end=get(entry, "end", int),
        text=get(entry, "text", str),
        spoken=get(entry, "spoken", str),
    )


def _read_warnings(metadata: JsonObject) -> tuple[SpeechWarning, ...]:
    return tuple(
        SpeechWarning(
            code=get(warning, "code", str),
            message=get(warning, "message", str),
            start=get(warning, "start", int) if "start" in warning else None,
            end=get(warning, "end", int) if "end" in warning else None,
            text=get(warning, "text", str) if "text" in warning else "",
            spoken=get(warning, "spoken", str) if "spoken" in warning else "",
        )
        for warning in get_list(metadata, "warnings", dict)
    )


def _array(read: Reader, name: str) -> NDArray[Any]:
    array = read(name)
    if array is None:
        raise ProtocolError(f"the answer lacks the output {name!r}")
    return array


def _scalar(read: Reader, name: str) -> Any:
    array = _array(read, name)
    if array.size != 1:
        raise ProtocolError(f"the output {name!r} has {array.size} values instead of one")
    return array.reshape(-1)[0]


def _read_samples(read: Reader) -> Samples:
    array = _array(read, "audio")
    if array.dtype != np.float32 or array.ndim != 1:
        raise ProtocolError(f"the output 'audio' is {array.dtype} {list(array.shape)}")
    samples = array.view()
    samples.flags.writeable = False
    return samples


def _read_metadata(read: Reader) -> JsonObject:
    metadata = parse_object(_scalar(read, "metadata"))
    if mismatch := contract_mismatch(metadata):
        raise ProtocolError(mismatch, hint="Install the chattts-client that fits the server.")
    return metadata


def contract_mismatch(metadata: JsonObject) -> str:
    """Why this client does not understand the server; empty if it does, or an old one is silent."""
    theirs = metadata.get("contract", CONTRACT)
    if theirs == CONTRACT:
        return ""
    return f"the server speaks contract {theirs!r}, this client contract {CONTRACT}"


def read_summary(metadata: JsonObject) -> Summary:
    timings: JsonObject = get(metadata, "timings", dict)
    return Summary(
        request_id=get(metadata, "request_id", str),
        seed=get(metadata, "seed", int),
        voice=get(metadata, "voice", str),
        finish_reasons=get_list(metadata, "finish_reasons", str),
        warnings=_read_warnings(metadata),
        timings=Timings(
            queue_ms=get_number(timings, "queue_ms"),
            first_audio_ms=get_optional_number(timings, "first_audio_ms"),
            total_ms=get_number(timings, "total_ms"),
            audio_s=get_number(timings, "audio_s"),
        ),
        text_segments=get_list(metadata, "text_segments", str),
        model_version=get(metadata, "model_version", str),
        checkpoint=get(metadata, "checkpoint", str),
        precision=get(metadata, "precision", str),
        latency=get(metadata, "latency", str),
        untrained=get(metadata, "untrained", bool),
        quality=get_list(metadata, "quality", str) if "quality" in metadata else (),
    )
