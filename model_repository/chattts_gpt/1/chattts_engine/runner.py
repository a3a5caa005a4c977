"""Runner: the seam between deciding (scheduler, engine) and computing (onnxruntime or torch)."""

from __future__ import annotations

from collections.abc import Sequence as SequenceOf
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .sequence import Sequence


class Runner(Protocol):
    """Computes the network over a paged KV cache.

    A row's result depends on its own sequence only, bit for bit. The runner reads a sequence's id,
    block table and computed positions, and changes nothing in it.
    """

    def prefill(self, sequence: Sequence, inputs: NDArray[np.float32]) -> NDArray[np.float32]:
        """Compute positions 0 ... T-1 and keep their keys and values.

        Args:
            sequence: owns blocks for the T positions.
            inputs: (T, H) embeddings.

        Returns:
            (T, H) hidden states after the final norm.
        """

    def decode(
        self, sequences: SequenceOf[Sequence], inputs: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """Compute one position, num_computed_tokens, of each sequence.

        Args:
            sequences: B sequences that were prefilled, each owning the block of its position.
            inputs: (B, H) embeddings, in the same order.

        Returns:
            (B, H) hidden states after the final norm, in the same order.
        """

    def release(self, sequence: Sequence) -> None:
        """Forget a sequence's keys and values; unknown sequences are ignored."""

    def code_logits(self, hidden: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return (N, C, A) logits of the codebooks for (N, H) hidden states."""

    def text_logits(self, hidden: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return (N, V) logits of the text head for (N, H) hidden states."""
