"""What the command lines of training and evaluation share."""

from __future__ import annotations

from argparse import ArgumentTypeError


def count(text: str) -> int:
    """Read a number of steps or sentences, at least 1."""
    value = int(text)
    if value < 1:
        raise ArgumentTypeError(f"{value} is less than 1")
    return value
