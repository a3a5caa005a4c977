"""Mode text: the token model copies what it is given, so that the refine pass changes no word.

Letters in shapes: B rows, N positions, L positions of the longest copy.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from train_voice.gpt import TokenModel
from train_voice.token_data import TokenData
from train_voice.tokenizer import word_pieces
from train_voice.training import scalar

STYLES = ("", "[oral_2][laugh_0][break_6]")
"""What may stand between a text and its copy."""
RANDOM_SHARE = 0.5
RANDOM_LENGTHS = (2, 14)
POSITIONS_PER_ROW = 40
GUIDED_WEIGHT = 0.3
_IGNORED = -100


class CopyTask:
    """Draws texts and random words, and says how well they are copied."""

    def __init__(self, data: TokenData, model: TokenModel) -> None:
        self._data, self._model = data, model
        self._pieces = [data.tokenizer.id(piece) for piece in word_pieces()]

    def loss(
        self, positions: int, rng: np.random.Generator, watched: Sequence[tuple[int, int]]
    ) -> tuple[Tensor, dict[str, float]]:
        """Return the loss of about so many positions, and its parts for the log."""
        rows = max(1, positions // POSITIONS_PER_ROW)
        ids, wanted, sources = self._draw(rows, rng)
        hidden, attention = self._model.llama(self._model.embed.emb_text(ids), watched)
        counts = wanted != _IGNORED
        logits = self._model.embed.head_text(hidden[counts])
        text = F.cross_entropy(logits, wanted[counts])
        places = sources.clamp(min=0)[..., None]
        is_copy = sources != _IGNORED
        guided = torch.stack(
            [-each.gather(2, places)[..., 0][is_copy].mean() for each in attention]
        )
        loss = text + GUIDED_WEIGHT * guided.mean()
        return loss, {"text": scalar(text), "text_guided": scalar(guided.mean())}

    def _draw(self, rows: int, rng: np.random.Generator) -> tuple[Tensor, Tensor, Tensor]:
        """Return (B, N) ids, what each position shall say, and the position that it copies."""
        tokenizer = self._data.tokenizer
        start, middle, end = (tokenizer.id(f"[{name}break]") for name in "SPE")
        drawn = []
        for text in self._data.texts(rows, rng):
            source = tokenizer.ids(text)
            if rng.random() < RANDOM_SHARE:
                source = [int(i) for i in rng.choice(self._pieces, rng.integers(*RANDOM_LENGTHS))]
            style = tokenizer.ids(STYLES[int(rng.integers(len(STYLES)))])
            drawn.append((source, [start, *source, middle, *style]))
        length = max(len(prompt) + len(source) for source, prompt in drawn)
        ids = np.zeros((rows, length), np.int64)
        wanted, sources = np.full((2, rows, length), _IGNORED)
        for row, (source, prompt) in enumerate(drawn):
            ids[row, : len(prompt) + len(source)] = [*prompt, *source]
            saying = slice(len(prompt) - 1, len(prompt) + len(source))
            wanted[row, saying] = [*source, end]
            # the end token "copies" the mark behind the text
            sources[row, saying] = np.arange(1, len(source) + 2)
        return torch.from_numpy(ids), torch.from_numpy(wanted), torch.from_numpy(sources)
