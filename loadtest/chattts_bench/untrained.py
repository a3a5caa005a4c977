"""A vocoder of the published sizes with random weights, without the rest of a checkpoint."""

from __future__ import annotations

from pathlib import Path

import layout
import make_checkpoint
import numpy as np
from checkpoint import Checkpoint
from safetensors.numpy import load_file, save_file
from tokenizer_file import small_vocabulary
from vocoder_graph import write_hidden_vocoder

HIDDEN_SIZE = 768
_PARTS = ("Decoder", "Vocos")


def vocoder(folder: Path, layer_scale: float) -> Path:
    """Write the graph of a vocoder into a folder.

    Args:
        folder: where it goes, beside the checkpoint that it is made from.
        layer_scale: what every layer's output is multiplied with before it is added.

    Returns:
        The ONNX file.
    """
    root = folder / f"vocoder-{layer_scale}"
    sizes = make_checkpoint.make_sizes(
        small_vocabulary(), HIDDEN_SIZE, 64, 1, 12,
        decoder=(512, 128, 12), dvae=(64, 64, 32, 1), vocos=(512, 1536, 8),
    )  # fmt: skip
    make_checkpoint.write_checkpoint(root, sizes, seed=0)
    for part in _PARTS:
        path = root / layout.TENSOR_FILES[part]
        tensors = load_file(path)
        for name, tensor in tensors.items():
            if tensor.ndim == 1 and make_checkpoint.LAYER_SCALE_NAME.search(name):
                tensors[name] = np.full_like(tensor, layer_scale)
        save_file(tensors, path)
    graph = folder / f"vocoder-{layer_scale}.onnx"
    graph.write_bytes(write_hidden_vocoder(Checkpoint.open(root)).onnx)
    return graph
