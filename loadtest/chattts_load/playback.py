"""What a listener hears of a stream whose pieces arrive now and then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Playback:
    """Playback that begins with the first piece, and waits whenever the next one is not there."""

    arrivals_s: Sequence[float]
    """Seconds from the call to each piece with samples, in order."""
    durations_s: Sequence[float]
    """Seconds of audio in each of them."""

    @property
    def waits_s(self) -> list[float]:
        """Seconds of each wait after the first piece; empty: it never ran dry."""
        if not self.arrivals_s:
            return []
        waits_s = []
        played_until_s = self.arrivals_s[0]
        for arrival_s, duration_s in zip(self.arrivals_s, self.durations_s, strict=True):
            if arrival_s > played_until_s:
                waits_s.append(arrival_s - played_until_s)
            played_until_s = max(played_until_s, arrival_s) + duration_s
        return waits_s
