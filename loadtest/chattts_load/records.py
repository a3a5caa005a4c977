"""What was seen of each request: one line of JSON each, written while the load runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Record:
    """One finished request, as its caller saw it."""

    kind: str
    """stream, unary or http."""
    language: str
    length: str
    """Class of the text's length: short, medium or long."""
    characters: int
    started_s: float
    """Unix time of the call."""
    latency_s: float
    """Seconds from the call to the end of the answer."""
    first_audio_s: float
    """Seconds from the call to the first samples; 0 if there were none."""
    audio_s: float
    """Seconds of audio."""
    waits: int
    """How often a listener who began with the first samples ran dry; 0 where all came at once."""
    waited_s: float
    """Seconds that this listener waited."""
    error: str = ""
    """The error's class and message; empty: all is well."""

    @property
    def ended_s(self) -> float:
        """Unix time of the answer's end."""
        return self.started_s + self.latency_s

    @property
    def is_ok(self) -> bool:
        """Whether there was an answer with audio."""
        return not self.error and self.audio_s > 0

    @property
    def real_time_factor(self) -> float:
        """Seconds waited per second of audio; only where there is audio."""
        return self.latency_s / self.audio_s


class RecordWriter:
    """Appends records to a new file."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w", encoding="utf-8")

    def write(self, record: Record) -> None:
        """Append one record."""
        self._file.write(json.dumps(asdict(record)) + "\n")

    def close(self) -> None:
        """Write what is held back, and close the file."""
        self._file.close()


def read_records(path: Path) -> list[Record]:
    """Read a file of records in the order of their ends."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [Record(**json.loads(line)) for line in lines]


def ended_within(records: Sequence[Record], settle_s: float, seconds: float) -> list[Record]:
    """Those that ended in `seconds` seconds, after the first `settle_s` since the first call.

    Who looks at ends sees long and short requests as often as they happen; who drops those that
    began before would prefer the short ones.
    """
    if not records:
        return []
    begin_s = min(record.started_s for record in records) + settle_s
    return [record for record in records if begin_s <= record.ended_s < begin_s + seconds]
