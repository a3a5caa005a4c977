"""Embeddings: token ids, speaker slot and audio codes to the vectors that the network reads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

from .sequence import GenerationRequest, Mode


class Embeddings:
    """The text table (V, H) and one code table per codebook (C, A, H), float32."""

    def __init__(
        self, text: NDArray[np.float32], code: NDArray[np.float32], speaker_id: int
    ) -> None:
        self._text = text
        self._code = code
        self._speaker_id = speaker_id

    @classmethod
    def from_file(cls, path: Path, speaker_id: int) -> Embeddings:
        """Read embeddings.safetensors as build/ writes it."""
        tensors = load_file(path)
        return cls(tensors["emb_text"], tensors["emb_code"], speaker_id)

    @property
    def num_text_tokens(self) -> int:
        """Rows of the text table."""
        return len(self._text)

    def prompt(self, request: GenerationRequest) -> NDArray[np.float32]:
        """Return the (T, H) inputs of a request's prompt, audio prompt included.

        The row of each [spk_emb] token is replaced by the normalised speaker vector when one is
        given.
        """
        rows: NDArray[np.float32] = self._text[request.prompt_token_ids]
        if request.speaker_embedding is not None:
            is_slot = request.prompt_token_ids == self._speaker_id
            rows[is_slot] = normalise_speaker(request.speaker_embedding)
        if request.audio_prompt_codes is not None:
            rows = np.concatenate([rows, self.codes(request.audio_prompt_codes)])
        return rows

    def codes(self, codes: NDArray[np.int32]) -> NDArray[np.float32]:
        """Return the (T, H) sums of the codebooks' rows for (T, C) codes."""
        rows: NDArray[np.float32] = self._code[0][codes[:, 0]]
        for codebook in range(1, len(self._code)):
            rows += self._code[codebook][codes[:, codebook]]
        return rows

    def step(self, mode: Mode, token: NDArray[np.int32]) -> NDArray[np.float32]:
        """Return the (H,) input of one generated token, (C,) in mode code or (1,) in mode text."""
        if mode == "code":
            row: NDArray[np.float32] = self.codes(token[None])[0]
        else:
            row = self._text[token[0]]
        return row


def normalise_speaker(vector: NDArray[np.float16]) -> NDArray[np.float32]:
    """Return the (H,) vector scaled to unit length the way the published package does it.

    The norm is rounded to float16 and so is each quotient, hence the length is not exactly 1.
    The vector must not be zero; the request's validation sees to it.
    """
    norm = np.float16(np.sqrt(np.sum(np.square(vector.astype(np.float64)))))
    return (vector / norm).astype(np.float32)
