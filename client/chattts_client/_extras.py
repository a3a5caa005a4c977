"""How to get what an extra brings."""

from __future__ import annotations


def missing_extra(what: str, extra: str) -> str:
    """The sentence for something that needs an extra which is not installed.

    Args:
        what: what cannot be done.
        extra: in brackets, as pip takes it.
    """
    where = f"pip install '.{extra}' in a checkout, or 'WHEEL{extra}' with the wheel's path"
    return f"{what} needs an extra: {where}"
