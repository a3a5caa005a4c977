"""Finished utterances on disk: asked when there is no server, or before it.

One file per utterance: a digest of all that follows, one line of JSON (the summary), and the
samples as little-endian float32. Files appear whole, by a rename, and a file whose digest does not
match is removed, so several processes may share a folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields
from os import PathLike
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from ._answers import read_summary
from ._exceptions import ProtocolError
from ._files import PARTIAL_SUFFIX, replacing
from ._json import get, parse_object
from ._protocol import SpeechRequest
from ._types import Audio, AudioChunk, Summary

CacheUse = Literal["fallback", "first"]
DEFAULT_MAX_BYTES: Final = 1 << 30

_SUFFIX = ".utterance"
_FORMAT = 1
"""Part of every key: files of another layout are never found."""
_RATE = "rate_hz"
_KEPT_SHARE = 0.9
"""Eviction stops at this share of the limit, so that the folder is not listed for every file."""
_ABANDONED_S = 3600.0
"""An unfinished file this old belongs to a process that has died."""
_WHOLE = frozenset({"eos", "length"})
"""Reasons of segments that were spoken to their end."""

_log = logging.getLogger("chattts_client")


class UtteranceCache:
    """Keeps finished utterances in a folder; safe for several threads and processes.

    What is asked decides what is found: text, voice and all other options, seed and model version,
    each as the caller gave it. Utterances that ended early or have no audio are not kept. A folder
    that cannot be read or written costs no utterance: it is logged (logger `chattts_client`).
    """

    def __init__(
        self,
        folder: str | PathLike[str],
        *,
        use: CacheUse = "fallback",
        max_bytes: int = DEFAULT_MAX_BYTES,
    ) -> None:
        """Make the folder if it is not there.

        Args:
            folder: where the files are. Whoever may write there can change what is heard.
            use: "fallback" gives a kept utterance only if the server cannot be reached, is full or
                does not answer in time, after all retries. "first" does so too, and a request that
                names both `seed` and `model_version` finds it before the server is asked.
            max_bytes: size of all files; the least recently used are removed beyond it. Each
                further process that writes may exceed it by a tenth for a while.

        Raises:
            ValueError: a malformed argument; an empty `folder` is one.
            OSError: the folder cannot be made.
        """
        if not os.fspath(folder):
            raise ValueError("folder: is empty; name one, such as '.' for the current one")
        if use not in ("fallback", "first"):
            raise ValueError(f"use: {use!r} is neither 'fallback' nor 'first'")
        if isinstance(max_bytes, bool) or not isinstance(max_bytes, int) or max_bytes < 1:
            raise ValueError(f"max_bytes: {max_bytes!r} is not a whole number from 1")
        self.folder = Path(folder)
        """Where the files are."""
        self.use: CacheUse = use
        """fallback or first."""
        self.max_bytes = max_bytes
        """Size of all files."""
        self._kept_bytes = int(max_bytes * _KEPT_SHARE)
        self._room_bytes = 0
        self._lock = threading.Lock()
        self.folder.mkdir(parents=True, exist_ok=True)

    def load(self, key: str) -> AudioChunk | None:
        """The utterance kept under `key`, as one final chunk; None if there is none."""
        path = self._path(key)
        try:
            content = path.read_bytes()
            chunk = _decode(content, key)
            os.utime(path)  # its time of change is when it was last used
        except FileNotFoundError:
            return None
        except (OSError, ProtocolError) as error:
            _log.warning("a kept utterance is left out: %s", error)
            if isinstance(error, ProtocolError):
                with contextlib.suppress(OSError):
                    path.unlink()
            return None
        return chunk

    def store(self, key: str, audio: Audio) -> None:
        """Keep an utterance under `key`, unless it ended early, is empty or far too large."""
        if not len(audio.samples) or not _WHOLE.issuperset(audio.finish_reasons):
            return
        content = _encode(audio, key)
        if len(content) > self._kept_bytes:
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)  # somebody may have removed it
            with replacing(self._path(key)) as file:
                file.write(content)
            with self._lock:
                self._room_bytes -= len(content)
                if self._room_bytes < 0:
                    self._evict()
        except OSError as error:
            _log.warning("an utterance was not kept: %s", error)

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}{_SUFFIX}"

    def _evict(self) -> None:
        """Remove the least recently used files if all of them are too large; see what is left."""
        found = sorted(self._files())
        total = sum(size for _, size, _ in found)
        goal = self.max_bytes if total <= self.max_bytes else self._kept_bytes
        for _, size, path in found:
            if total <= goal:
                break
            with contextlib.suppress(FileNotFoundError):  # another process was faster
                path.unlink()
            total -= size
        self._room_bytes = min(self.max_bytes - total, self.max_bytes - self._kept_bytes)

    def _files(self) -> Iterator[tuple[float, int, Path]]:
        """Time of last use, size and path of each file; unfinished ones that are old go."""
        for entry in list(os.scandir(self.folder)):
            path = Path(entry.path)
            with contextlib.suppress(FileNotFoundError):  # as above
                status = entry.stat()
                if path.suffix == _SUFFIX:
                    yield status.st_mtime, status.st_size, path
                elif path.suffix == PARTIAL_SUFFIX and _is_abandoned(status.st_mtime):
                    path.unlink()


class Shelf:
    """What a cache, if there is one, has for one request."""

    def __init__(self, cache: UtteranceCache | None, request: SpeechRequest) -> None:
        self._cache = cache
        self._key = "" if cache is None else key_of(request)
        self.is_first = cache is not None and cache.use == "first" and request.is_repeatable
        """Whether to look here before the server is asked."""

    @property
    def is_there(self) -> bool:
        """Whether there is a cache at all."""
        return self._cache is not None

    def load(self) -> AudioChunk | None:
        """What is kept for the request, as one final chunk."""
        return None if self._cache is None else self._cache.load(self._key)

    def store(self, audio: Audio) -> None:
        """Keep the answer to the request."""
        if self._cache is not None:
            self._cache.store(self._key, audio)


def key_of(request: SpeechRequest) -> str:
    """Names what a request asks for, whatever its transport, and streamed or not."""
    asked = {
        tensor.name: _plain(tensor.name, tensor.data.item())
        for tensor in request.tensors
        if tensor.name != "stream"
    }
    whole = {"format": _FORMAT, "model_version": request.model_version, "inputs": asked}
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()


def _plain(name: str, value: object) -> object:
    if name == "options" and isinstance(value, bytes):  # JSON, whose keys have no order
        return json.loads(value)
    return value.decode() if isinstance(value, bytes) else value


def _encode(audio: Audio, key: str) -> bytes:
    summary = Summary(**{field.name: getattr(audio, field.name) for field in fields(Summary)})
    head = {"key": key, _RATE: audio.sample_rate, **_without_none(asdict(summary))}
    line = json.dumps(head, ensure_ascii=False).encode()
    rest = line + b"\n" + audio.samples.astype("<f4", copy=False).tobytes()
    return _digest(rest) + b"\n" + rest


def _without_none(fields_of: Mapping[str, Any]) -> dict[str, Any]:
    """A summary as the server would send it: what is not known is left out."""
    plain = {name: value for name, value in fields_of.items() if value is not None}
    warnings = [
        {name: value for name, value in warning.items() if value is not None}
        for warning in plain["warnings"]
    ]
    return {**plain, "warnings": warnings}


def _decode(content: bytes, key: str) -> AudioChunk:
    """The utterance in a file.

    Raises:
        ProtocolError: the file is damaged, or another one under this name.
    """
    digest, _, rest = content.partition(b"\n")
    if digest != _digest(rest):
        raise ProtocolError(f"{key}{_SUFFIX} is damaged")
    line, _, raw = rest.partition(b"\n")
    head = parse_object(line)
    if get(head, "key", str) != key:
        raise ProtocolError(f"{key}{_SUFFIX} is another utterance")
    summary = read_summary(head)
    return AudioChunk(
        samples=np.frombuffer(raw, "<f4").astype(np.float32, copy=False),
        sample_rate=get(head, _RATE, int),
        index=0,
        segment_index=0,
        num_segments=max(1, len(summary.text_segments)),
        is_final=True,
        summary=summary,
    )


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()


def _is_abandoned(changed_s: float) -> bool:
    return time.time() - changed_s > _ABANDONED_S
