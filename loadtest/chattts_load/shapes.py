"""How many users there are, second by second."""

from __future__ import annotations

from dataclasses import dataclass

SHAPES = ("constant", "steps", "ramp", "spike", "soak", "poisson")
"""constant; steps: 1, 2, 4 … users, equally long each; ramp: from 1 to all; spike: an eighth, all
of them in the middle third, an eighth; soak: all after a slow start; poisson: no users at all but
arrivals at random times, whether or not the earlier ones have been answered."""
_SOAK_START = 0.1


@dataclass(frozen=True, slots=True)
class Shape:
    """A load over time."""

    name: str
    """One of SHAPES."""
    users: int
    """Most users at once, at least 1; poisson: does not matter."""
    seconds: float
    """How long it lasts."""

    def users_at(self, elapsed_s: float) -> int | None:
        """Users wanted so many seconds after the start; None when it is over."""
        if elapsed_s >= self.seconds:
            return None
        share = elapsed_s / self.seconds
        if self.name == "steps":
            counts = _doubling(self.users)
            return counts[int(share * len(counts))]
        if self.name == "ramp":
            return (
                1 + int(share * self.users) if share * self.users < self.users - 1 else self.users
            )
        if self.name == "spike":
            return self.users if 1 / 3 <= share < 2 / 3 else max(1, self.users // 8)
        if self.name == "soak":
            return max(1, round(self.users * min(1.0, share / _SOAK_START)))
        return self.users


def _doubling(most: int) -> list[int]:
    """1, 2, 4 … up to and with `most`."""
    counts = [1]
    while counts[-1] * 2 < most:
        counts.append(counts[-1] * 2)
    return counts if most == 1 else [*counts, most]
