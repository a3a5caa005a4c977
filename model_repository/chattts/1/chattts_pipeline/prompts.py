"""From a segment to the prompts of the token model, and what a refine pass may change in it."""

from chattts_text.tokens import without_tokens


def code_prompt(text: str, *, style: str, has_speaker: bool, transcript: str = "") -> str:
    """Decorate a segment for mode code.

    Args:
        text: The segment.
        style: Control tokens before the text.
        has_speaker: Whether a speaker vector fills the speaker slot.
        transcript: What the audio prompt says; empty without one.
    """
    slot = "[spk_emb]" if has_speaker else "[empty_spk]"
    return f"[Stts]{slot}{transcript}{style}{text.strip()}[Ptts]"


def refine_prompt(text: str, style: str) -> str:
    """Decorate a segment for mode text.

    Args:
        text: The segment.
        style: The style tokens that the refine pass reads.
    """
    return f"[Sbreak]{text.strip()}[Pbreak]{style}"


def has_same_words(one: str, other: str) -> bool:
    """Say whether two texts differ in nothing but text tokens, spaces and letter case."""
    bare = ["".join(without_tokens(text).split()).casefold() for text in (one, other)]
    return bare[0] == bare[1]
