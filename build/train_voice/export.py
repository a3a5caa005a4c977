"""Writes a trained voice as a checkpoint in the published layout, and reads one back into torch.

Half precision, but for windows, filter banks and the norms of the heads' rows. Beside `asset/` lie
what the model repository wants (voices, words) and what the evaluation wants (language model,
held-out sentences).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import layout
import numpy as np
import torch
from checkpoint import Checkpoint
from files import write_bytes, write_json
from make_checkpoint import config_json, hann_window, mel_filters
from safetensors.numpy import load_file, save
from torch import Tensor, nn

from train_voice.dvae import Dvae
from train_voice.gpt import TokenModel
from train_voice.modules import Decoder, Vocos
from train_voice.tokenizer import VoiceTokenizer

UNUSED_ROWS = 32
_QUANTIZERS = ("rvqs.", "vq_layer.quantizer.rvqs.")
_NORM, _DIRECTION = ".parametrizations.weight.original0", ".parametrizations.weight.original1"
_KEPT_FLOAT32 = ("window", "mel_scale.fb", _NORM)

Tensors = dict[str, Tensor]


@dataclass(frozen=True, slots=True)
class VoiceModel:
    """The five parts of a voice, ready to speak."""

    model: TokenModel
    decoder: Decoder
    dvae: Dvae
    vocos: Vocos

    def modules(self) -> list[nn.Module]:
        """Return all parts."""
        return [self.model, self.decoder, self.dvae, self.vocos]


def write_weights(root: Path, voice: VoiceModel) -> None:
    """Write the five weight files and the GPT's configuration below `root`."""
    sizes = voice.model.sizes
    parts: dict[str, Tensors] = {
        "gpt": {
            **voice.model.llama.state_dict(),
            layout.UNUSED_GPT_TENSOR: torch.zeros(UNUSED_ROWS, sizes.hidden_size),
        },
        "Embed": _with_norms(voice.model.embed.state_dict()),
        "Decoder": voice.decoder.state_dict(),
        "DVAE": {
            **_renamed(voice.dvae.state_dict(), *_QUANTIZERS),
            **_features("preprocessor_mel.mel_spec.", voice.dvae.coef.shape[1]),
        },
        "Vocos": {
            **voice.vocos.state_dict(),
            **_features("feature_extractor.mel_spec.", voice.dvae.coef.shape[1]),
            "head.istft.window": torch.from_numpy(hann_window()),
        },
    }
    for part, tensors in parts.items():
        arrays = {name: _stored(name, tensor) for name, tensor in tensors.items()}
        write_bytes(root / layout.TENSOR_FILES[part], save(arrays))
    write_json(root / layout.CONFIG_FILE, config_json(sizes, UNUSED_ROWS))


def read_voice(root: Path) -> VoiceModel:
    """Return the voice of a checkpoint in the published layout.

    Raises:
        CheckpointError: it is not a whole checkpoint.
    """
    found = Checkpoint.open(root)
    voice = VoiceModel(
        TokenModel(found.gpt),
        Decoder(found.decoder, found.num_mels),
        Dvae(found.dvae),
        Vocos(found.vocos),
    )
    files = {part: _read(root / path) for part, path in layout.TENSOR_FILES.items()}
    files["gpt"].pop(layout.UNUSED_GPT_TENSOR, None)
    files["Embed"] = _without_norms(files["Embed"])
    files["DVAE"] = _renamed(files["DVAE"], *reversed(_QUANTIZERS))
    modules: Mapping[str, nn.Module] = {
        "gpt": voice.model.llama,
        "Embed": voice.model.embed,
        "Decoder": voice.decoder,
        "DVAE": voice.dvae,
        "Vocos": voice.vocos,
    }
    for part, module in modules.items():
        wanted = module.state_dict().keys()
        module.load_state_dict({name: files[part][name] for name in wanted})
        module.eval()
    return voice


def read_tokenizer(root: Path) -> VoiceTokenizer:
    """Return the tokenizer of a checkpoint."""
    return VoiceTokenizer(root / layout.TOKENIZER_FILE)


def sizes_json(checkpoint: Checkpoint) -> dict[str, Any]:
    """Return the sizes of a checkpoint for programs that do not read them from the tensors."""
    return {
        "gpt": asdict(checkpoint.gpt),
        "decoder": asdict(checkpoint.decoder),
        "dvae_encoder": asdict(checkpoint.dvae.encoder),
        "dvae_decoder": asdict(checkpoint.dvae.decoder),
        "vocos": asdict(checkpoint.vocos),
    }


def _stored(name: str, tensor: Tensor) -> np.ndarray[Any, Any]:
    array = tensor.detach().contiguous().numpy()
    return array if name.endswith(_KEPT_FLOAT32) else array.astype(np.float16)


def _read(path: Path) -> Tensors:
    arrays = load_file(path)
    return {name: torch.from_numpy(array.astype(np.float32)) for name, array in arrays.items()}


def _renamed(tensors: Tensors, before: str, after: str) -> Tensors:
    return {
        after + name.removeprefix(before) if name.startswith(before) else name: tensor
        for name, tensor in tensors.items()
    }


def _with_norms(tensors: Tensors) -> Tensors:
    """Split each head's weight into its rows' norms and the weight, as weight norm stores them.

    The norms are those of the weight as it is stored: what is read back is written again the same.
    """
    split: Tensors = {}
    for name, tensor in tensors.items():
        if name.startswith("head_"):
            head = name.removesuffix(".weight")
            stored = tensor.half().float()
            split[head + _NORM] = stored.norm(dim=1, keepdim=True)
            split[head + _DIRECTION] = stored
        else:
            split[name] = tensor
    return split


def _without_norms(tensors: Tensors) -> Tensors:
    folded = {name: tensor for name, tensor in tensors.items() if not name.startswith("head_")}
    for name, norm in tensors.items():
        if name.endswith(_NORM):
            head = name.removesuffix(_NORM)
            direction = tensors[head + _DIRECTION]
            folded[f"{head}.weight"] = direction * (norm / direction.norm(dim=1, keepdim=True))
    return folded


def _features(prefix: str, num_mels: int) -> Tensors:
    return {
        f"{prefix}spectrogram.window": torch.from_numpy(hann_window()),
        f"{prefix}mel_scale.fb": torch.from_numpy(mel_filters(num_mels)),
    }
