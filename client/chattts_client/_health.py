"""Is there a server, does it speak, and does it speak this client's language?"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """What was found behind an address."""

    url: str
    """HOST:PORT that was asked."""
    live: bool
    """True: a server answers."""
    ready: bool
    """True: its models answer too, so that it would speak now."""
    reason: str
    """One sentence: why it is not ready; empty if it is."""
    server_version: str
    """Of Triton, such as 2.51.0; empty if it did not say."""
    contract: int
    """Version of the inputs, outputs and metadata that the models follow; 0: they did not say."""
    compatible: bool
    """True: this client understands that version, or none was said."""
