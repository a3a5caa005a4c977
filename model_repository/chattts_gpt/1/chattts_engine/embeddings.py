"""Embeddings: token ids, speaker slot and audio codes to the vectors that the network reads."""

from __future__ import annotations

from collections.abc import Sequence as SequenceOf
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

from .sequence import GenerationRequest, Sequence


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

    def steps(self, sequences: SequenceOf[Sequence]) -> NDArray[np.float32]:
        """Return the (B, H) inputs of the next known token of each of B sequences."""
        rows = np.empty((len(sequences), self._text.shape[1]), dtype=np.float32)
        for mode in ("code", "text"):
            of_mode = [i for i, s in enumerate(sequences) if s.request.mode == mode]
            if of_mode:
                tokens = np.stack([sequences[i].next_input() for i in of_mode])
                rows[of_mode] = self.codes(tokens) if mode == "code" else self._text[tokens[:, 0]]
        return rows


def normalise_speaker(vector: NDArray[np.float16]) -> NDArray[np.float32]:
    """Return the (H,) vector scaled to unit length the way the published package does it.

    The norm is rounded to float16 and so is each quotient, hence the length is not exactly 1.
    The vector must not be zero; the request's validation sees to it.
    """
    norm = np.float16(np.sqrt(np.sum(np.square(vector.astype(np.float64)))))
    return (vector / norm).astype(np.float32)
