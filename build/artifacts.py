"""Write every file of a repository from a checkpoint into a folder, each one checked.

Knows the repository's file names; knows nothing of stamps, locks or of moving into place.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import gpt_graph
import kv_calibration
import layout
import numpy as np
import reference_gpt
import selfcheck
import vocoder_graph
from checkpoint import Array, Checkpoint, CheckpointError
from files import write_bytes, write_json
from gpt_graph import Precision
from repository import front_voices, front_weights, gpt_weights, vocoder_file
from safetensors.numpy import save
from voice_copies import VoicePlan

Runner = Literal["onnx", "torch"]

FORMAT = 1
WORDS_FILE = "domain_words.txt"
"""The words that a limited voice knows; it learnt to speak one sentence at a time."""
SEGMENT_SECONDS = 20.0
"""Speech in one go: the published model speaks 15 to 30 s well (2048 steps are 44 s)."""


@dataclass(frozen=True, slots=True)
class Written:
    """One finished file: its path in the repository and what its check found."""

    path: str
    note: str


class RepositoryWriter:
    """Writes the files of one version below `folder`, as they lie in the repository."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        folder: Path,
        version: int,
        precision: Precision,
        runner: Runner,
        voices: VoicePlan,
    ) -> None:
        self._checkpoint = checkpoint
        self._folder = folder
        self._gpt = gpt_weights(version)
        self._front = front_weights(version)
        self._voice_folder = front_voices(version)
        self._voices = voices
        self._vocoder = vocoder_file(version)
        self._precision: Precision = precision
        self._runner = runner

    def write(self) -> Iterator[Written]:
        """Write all files, one by one.

        Raises:
            CheckpointError: the tokenizer does not fit the weights.
            CheckError: a graph computes something else than the reference.
        """
        tokenizer = self._checkpoint.root / layout.TOKENIZER_FILE
        check_tokenizer(tokenizer, self._checkpoint.gpt.num_text_tokens)
        vocoder = vocoder_graph.write_hidden_vocoder(self._checkpoint)
        yield from self._small_files(tokenizer, vocoder.state_size)
        yield from self._gpt_files()
        path = self._save(self._vocoder, vocoder.onnx)
        yield Written(self._vocoder, selfcheck.check_vocoder(path, self._checkpoint))

    def _save(self, name: str, data: bytes) -> Path:
        path = self._folder / name
        write_bytes(path, data)
        return path

    def _save_json(self, name: str, value: dict[str, Any]) -> Written:
        write_json(self._folder / name, value)
        return Written(name, "")

    def _small_files(self, tokenizer: Path, state_size: int) -> Iterator[Written]:
        checkpoint = self._checkpoint
        words = checkpoint.root / WORDS_FILE
        common = {
            "format": FORMAT,
            "checkpoint": checkpoint.name,
            "untrained": checkpoint.is_untrained,
            "precision": self._precision,
        }
        yield self._save_json(
            f"{self._front}/checkpoint.json",
            {
                **common,
                "sample_rate": layout.SAMPLE_RATE,
                "hidden_size": checkpoint.gpt.hidden_size,
                "samples_per_step": layout.SAMPLES_PER_STEP,
                "context_steps": checkpoint.context_steps,
                "vocoder_state_size": state_size,
                "special_tokens": list(layout.SPECIAL_TOKENS),
                "segment_seconds": 0.0 if words.exists() else SEGMENT_SECONDS,
                "default_voice": self._voices.default,
            },
        )
        for file, content in self._voices.write.items():
            name = f"{self._voice_folder}/{file}"
            self._save(name, content)
            yield Written(name, "")
        yield self._save_json(
            f"{self._gpt}/gpt_config.json",
            {**common, "runner": self._runner, **asdict(checkpoint.gpt)},
        )
        copies = [(tokenizer, f"{folder}/tokenizer.json") for folder in (self._front, self._gpt)]
        if words.exists():
            copies.append((words, f"{self._front}/{WORDS_FILE}"))
        for source, name in copies:
            self._save(name, source.read_bytes())
            yield Written(name, "")

    def _gpt_files(self) -> Iterator[Written]:
        sizes, embed = self._checkpoint.gpt, self._checkpoint.load("Embed")
        name = f"{self._gpt}/embeddings.safetensors"
        codes = [embed[f"emb_code.{i}.weight"] for i in range(sizes.num_codebooks)]
        tables = {"emb_text": embed["emb_text.weight"], "emb_code": np.stack(codes)}
        self._save(name, save(tables))
        yield Written(name, "")
        tensors = self._checkpoint.load("gpt")
        if self._runner == "torch":
            yield self._torch_file(tensors, embed)
            return
        embeds = selfcheck.sample_embeddings(sizes, embed)
        hidden = reference_gpt.hidden_states(embeds, tensors, sizes)
        name = f"{self._gpt}/gpt.onnx"
        is_int8 = self._precision == "int8"
        scales = kv_calibration.calibrate(sizes, tensors, embed) if is_int8 else None
        path = self._save(name, gpt_graph.write_gpt(sizes, tensors, self._precision, scales))
        del tensors
        yield Written(name, selfcheck.check_gpt(path, embeds, hidden, self._precision))
        yield from self._head_files(embed, hidden)

    def _head_files(self, embed: dict[str, Array], hidden: Array) -> Iterator[Written]:
        sizes = self._checkpoint.gpt
        name = f"{self._gpt}/code_head.onnx"
        path = self._save(name, gpt_graph.write_code_head(sizes, embed))
        wanted = reference_gpt.code_logits(hidden, embed, sizes)
        yield Written(name, selfcheck.check_head(path, hidden, wanted))
        name = f"{self._gpt}/text_head.onnx"
        path = self._save(name, gpt_graph.write_text_head(sizes, embed))
        wanted = reference_gpt.text_logits(hidden, embed)
        yield Written(name, selfcheck.check_head(path, hidden, wanted))

    def _torch_file(self, tensors: dict[str, Array], embed: dict[str, Array]) -> Written:
        heads = ("text", *(f"code.{i}" for i in range(self._checkpoint.gpt.num_codebooks)))
        folded = {f"head_{head}.weight": gpt_graph.folded_head(embed, head) for head in heads}
        name = f"{self._gpt}/gpt.safetensors"
        self._save(name, save({**tensors, **folded}))
        return Written(name, "")


def optional_files(version: int) -> list[str]:
    """Return files of a version that only some builds write."""
    names = ("gpt.onnx", "code_head.onnx", "text_head.onnx", "gpt.safetensors")
    gpt = [f"{gpt_weights(version)}/{name}" for name in names]
    return [*gpt, f"{front_weights(version)}/{WORDS_FILE}"]


def check_tokenizer(path: Path, num_text_tokens: int) -> None:
    """Check that a tokenizer.json has the control tokens and no id without an embedding.

    Raises:
        CheckpointError: it does not fit.
    """
    try:
        tokenizer = json.loads(path.read_text(encoding="utf-8"))
        ids = dict(tokenizer["model"]["vocab"])
        ids.update({token["content"]: token["id"] for token in tokenizer["added_tokens"]})
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{path}: not a WordPiece tokenizer file ({error!r})") from error
    missing = [token for token in layout.SPECIAL_TOKENS if token not in ids]
    if missing:
        raise CheckpointError(f"{path}: control tokens missing: {', '.join(missing)}")
    largest = max(ids.values())
    if largest >= num_text_tokens:
        raise CheckpointError(f"{path}: id {largest}, but only {num_text_tokens} text embeddings")
