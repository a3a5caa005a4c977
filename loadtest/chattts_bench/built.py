"""Built: what a built model repository says about itself."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import tokenizers
from google.protobuf import text_format
from tritonclient.grpc import model_config_pb2


@dataclass(frozen=True)
class Built:
    """A model repository with weights."""

    path: Path

    @property
    def weights(self) -> Path:
        """Folder of the token model's weights."""
        return self.path / "chattts_gpt" / "1" / "weights"

    @property
    def engine_code(self) -> Path:
        """Folder that holds this repository's own copy of chattts_engine."""
        return self.path / "chattts_gpt" / "1"

    @cached_property
    def gpt(self) -> dict[str, Any]:
        """gpt_config.json: sizes, precision, checkpoint."""
        config: dict[str, Any] = json.loads((self.weights / "gpt_config.json").read_text("utf-8"))
        return config

    @property
    def precision(self) -> str:
        """fp32, int8 or int8-weights."""
        return str(self.gpt["precision"])

    @cached_property
    def context_steps(self) -> int:
        """Steps to each side that the vocoder's samples depend on."""
        facts = json.loads((self.path / "chattts/1/weights/checkpoint.json").read_text("utf-8"))
        return int(facts["context_steps"])

    @cached_property
    def engine_parameters(self) -> dict[str, str]:
        """The `parameters` of the token model's config.pbtxt."""
        text = (self.path / "chattts_gpt" / "config.pbtxt").read_text("utf-8")
        config = text_format.Parse(text, model_config_pb2.ModelConfig())
        return {key: value.string_value for key, value in config.parameters.items()}

    @property
    def max_num_seqs(self) -> int:
        """Sequences that the engine decodes together."""
        return int(self.engine_parameters["max_num_seqs"])

    def encode(self, prompt: str) -> list[int]:
        """Return the token ids of a decorated prompt."""
        tokenizer = tokenizers.Tokenizer.from_file(str(self.weights / "tokenizer.json"))
        tokenizer.no_truncation()
        tokenizer.no_padding()
        ids: list[int] = tokenizer.encode(prompt, add_special_tokens=False).ids
        return ids
