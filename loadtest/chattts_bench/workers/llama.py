"""Baseline: a plain loop over transformers' Llama, doing what the published package does per step.

    python -m chattts_bench.workers.llama CHECKPOINT

float32, the library's default attention, a cache that grows by concatenation, left-padded batches,
weight-normalised heads evaluated at every step, and the published order of sampling. A row that is
done keeps being fed until the batch is done. Source: the specification of the published model's
arithmetic; its code is not used. `published` measures the package itself.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from transformers import DynamicCache, LlamaModel
from transformers.generation.logits_process import TopKLogitsWarper, TopPLogitsWarper

from .answer import answer

NUM_CODEBOOKS = 4
TEMPERATURE = 0.3
TOP_P = 0.7
TOP_K = 20
MIN_TOKENS_TO_KEEP = 3
REPETITION_PENALTY = 1.05
PENALTY_WINDOW = 16


class Baseline:
    """Network, tables and heads of one checkpoint."""

    def __init__(self, checkpoint: Path) -> None:
        assets = checkpoint / "asset"
        self._gpt = LlamaModel.from_pretrained(assets / "gpt", dtype=torch.float32).eval()
        tensors = load_file(assets / "Embed.safetensors")
        self._text_table = tensors["emb_text.weight"]
        self._code_tables = [tensors[f"emb_code.{q}.weight"] for q in range(NUM_CODEBOOKS)]
        self._heads = [_head(tensors, f"head_code.{q}") for q in range(NUM_CODEBOOKS)]
        self._filters = [
            TopPLogitsWarper(TOP_P, min_tokens_to_keep=MIN_TOKENS_TO_KEEP),
            TopKLogitsWarper(TOP_K, min_tokens_to_keep=MIN_TOKENS_TO_KEEP),
        ]

    @torch.inference_mode()
    def run(self, prompt_ids: list[int], batch: int, steps: int, seed: int) -> dict[str, Any]:
        """Generate `steps` code steps for a batch of equal prompts; return the seconds of each."""
        started = time.perf_counter()
        inputs = self._text_table[torch.tensor([prompt_ids] * batch)]
        mask = torch.ones(batch, len(prompt_ids))
        cache = DynamicCache()
        codes = torch.zeros(batch, 0, NUM_CODEBOOKS, dtype=torch.long)
        hidden_states: list[torch.Tensor] = []
        step_s = []
        for _ in range(steps):
            step_started = time.perf_counter()
            positions = mask.long().cumsum(-1) - 1
            output = self._gpt(
                inputs_embeds=inputs,
                attention_mask=mask,
                position_ids=positions[:, -inputs.shape[1] :],
                past_key_values=cache,
                use_cache=True,
            )
            hidden = output.last_hidden_state[:, -1]
            hidden_states.append(hidden)
            codes = torch.cat([codes, self._sample(hidden, codes, seed)[:, None]], dim=1)
            inputs = self._embed(codes[:, -1])[:, None]
            mask = torch.cat([mask, torch.ones(batch, 1)], dim=1)
            step_s.append(time.perf_counter() - step_started)
        return {"elapsed_s": time.perf_counter() - started, "step_s": step_s}

    def _embed(self, codes: torch.Tensor) -> torch.Tensor:
        """(B, C) codes to (B, H): the sum over the codebooks' tables."""
        tables = enumerate(self._code_tables)
        return torch.stack([table[codes[:, q]] for q, table in tables], dim=-1).sum(-1)

    def _sample(self, hidden: torch.Tensor, codes: torch.Tensor, seed: int) -> torch.Tensor:
        """(B, H) hidden states and (B, T, C) earlier codes to (B, C) new codes."""
        logits = torch.stack([head(hidden) for head in self._heads], dim=1)
        batch, codebooks, vocabulary = logits.shape
        rows = logits.reshape(batch * codebooks, vocabulary).float() / TEMPERATURE
        recent = codes[:, -PENALTY_WINDOW:].permute(0, 2, 1).reshape(batch * codebooks, -1)
        counts = torch.nn.functional.one_hot(recent, vocabulary).sum(1)
        factor = torch.pow(REPETITION_PENALTY, counts)
        rows = torch.where(rows < 0, rows * factor, rows / factor)
        for keep_likely in self._filters:
            rows = keep_likely(recent, rows)
        rows[:, -1] = -torch.inf  # the end token: the number of steps is fixed
        noise = torch.Generator().manual_seed(seed)
        drawn = torch.multinomial(rows.softmax(-1), 1, generator=noise)
        return drawn.reshape(batch, codebooks)


def _head(tensors: dict[str, torch.Tensor], name: str) -> torch.nn.Module:
    direction = tensors[f"{name}.parametrizations.weight.original1"]
    vocabulary, hidden_size = direction.shape
    linear = torch.nn.Linear(hidden_size, vocabulary, bias=False)
    head: torch.nn.Module = torch.nn.utils.parametrizations.weight_norm(linear, dim=0)
    head.load_state_dict(
        {
            key: tensors[f"{name}.{key}"]
            for key in ("parametrizations.weight.original0", "parametrizations.weight.original1")
        }
    )
    return head


def main() -> None:
    """Load the checkpoint that the command line names and answer commands."""
    baseline = Baseline(Path(sys.argv[1]))

    def run(text: str, prompt_ids: list[int], batch: int, steps: int, seed: int) -> dict[str, Any]:
        del text
        return baseline.run(prompt_ids, batch, steps, seed)

    answer({"run": run})


if __name__ == "__main__":
    main()
