"""Write the vocoder as an ONNX graph that is run chunk by chunk: hidden states or codes -> audio.

Each step is computed once, and what lies outside a segment is not computed (stream_graph.py).
Everything is channel-last, so that linear layers are plain matrix products; convolutions over all
channels are matrix products over shifted copies.
"""

from __future__ import annotations

from dataclasses import dataclass

import layout
import numpy as np
from checkpoint import Array, Checkpoint, Tensors
from istft_graph import overlap_add, pad_bins, windowed_frames
from onnx_graph import INT32, GraphWriter
from stream_graph import END, Stream

RESIDUAL_SCALE = 1 / 4
"""Weight of the second residual stage, as in force when the published weights were made."""


def code_values() -> Array:
    """Return the (codes, digits) float32 table of what a code means, each number in -1 ... 1."""
    powers = layout.LEVELS ** np.arange(layout.DIGITS)
    digits = np.arange(layout.NUM_CODES)[:, None] // powers % layout.LEVELS
    middle = layout.LEVELS // 2
    values: Array = ((digits - middle) / middle).astype(np.float32)
    return values


def folded_output(tensors: Tensors) -> Array:
    """Return the weight (mels, width, taps) of conv_out, out_conv and coef as one convolution."""
    inner = tensors["decoder.conv_out.weight"][:, :, 0].astype(np.float64)
    outer = tensors["out_conv.weight"].astype(np.float64)
    weight = np.einsum("omt,mc->oct", outer, inner) * tensors["coef"].reshape(-1, 1, 1)
    folded: Array = weight.astype(np.float32)
    return folded


@dataclass(frozen=True, slots=True)
class Vocoder:
    """A vocoder graph: hidden states or codes, `mask`, `state` -> `audio`, `next_state`.

    A stream is fed chunk by chunk, B streams at a time, T steps each. `mask` (B, T) float32 is 1
    for the steps of the segment and 0 for those before and after; `state` (B, state_size) float32
    is 0 at the start, then `next_state` of the call before. `audio` (B, 512 T) float32 at 24 kHz
    lags `context_steps` behind: joined, it is 512 * context_steps zeros, the 512 N - 256 samples of
    N steps, zeros. To get the last samples, feed `context_steps` steps of mask 0. Both numbers
    stand in the file's metadata.
    """

    onnx: bytes
    state_size: int
    """Numbers in the state of one stream."""


class _VocoderWriter:
    """Writes one vocoder graph. Values are names of rows or frames, see `Stream`."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.checkpoint = checkpoint
        self.graph = GraphWriter("chattts_vocoder")
        self.audio_lag = layout.FRAMES_PER_STEP * checkpoint.context_steps

    def write_hidden(self) -> Vocoder:
        hidden = self.graph.input("hidden", ("batch", "steps", "hidden_size"))
        tensors = self.checkpoint.load("Decoder")
        self._open_stream()
        return self._finish(self._decode(hidden, tensors))

    def write_codes(self) -> Vocoder:
        graph = self.graph
        codes = graph.input("codes", ("batch", "steps", layout.NUM_CODEBOOKS), INT32)
        tensors = self.checkpoint.load("DVAE")
        self._open_stream()
        groups = [self._dequantize(codes, tensors, group) for group in range(layout.GROUPS)]
        return self._finish(self._decode(graph.node("Concat", groups, axis=-1), tensors))

    def _open_stream(self) -> None:
        steps = self.graph.input("mask", ("batch", "steps"))
        # the overlap-add looks one frame further back than the audio lags
        self.stream = Stream(self.graph, steps, layout.FRAMES_PER_STEP, self.audio_lag + 1)

    def _finish(self, mel: str) -> Vocoder:
        graph, tensors = self.graph, self.checkpoint.load("Vocos")
        window = tensors["head.istft.window"]
        rows = windowed_frames(graph, self._backbone(mel, tensors), window)
        audio = overlap_add(graph, self.stream, rows, window, self.audio_lag)
        graph.node("Reshape", [audio, graph.integers(0, -1)], "audio")
        graph.output("audio", ("batch", "samples"))
        self.stream.finish()
        graph.metadata("state_size", self.stream.state_size)
        graph.metadata("context_steps", self.checkpoint.context_steps)
        return Vocoder(graph.serialize(), self.stream.state_size)

    def _dequantize(self, codes: str, tensors: Tensors, group: int) -> str:
        """Return the (batch, steps, features) features of one group of codebooks."""
        graph = self.graph
        table = graph.constant("code_values", code_values())
        prefix = f"vq_layer.quantizer.rvqs.{group}.project_out."
        total = ""
        for residual in range(layout.RESIDUALS):
            channel = np.int64(group * layout.RESIDUALS + residual)
            index = graph.constant(f"channel_{channel}", channel)
            code = graph.node("Gather", [codes, index], axis=-1)
            value = graph.node("Gather", [table, code], axis=0)
            if residual:
                scale = graph.constant("residual_scale", np.float32(RESIDUAL_SCALE))
                value = graph.node("Add", [total, graph.node("Mul", [value, scale])])
            total = value
        return self._linear(total, prefix, tensors)

    def _decode(self, features: str, tensors: Tensors) -> str:
        """Turn a stack's input (batch, steps, 2 * channels) into rows of mels."""
        # a step's two frames are the two halves of its channels
        channels = tensors["decoder.conv_in.0.weight"].shape[1]
        value = self.stream.take(features, channels)
        value = self._gelu(self._conv(value, "decoder.conv_in.0.", tensors))
        value = self._conv(value, "decoder.conv_in.2.", tensors)
        for layer in range(self._layers(tensors, "decoder.decoder_block.")):
            prefix = f"decoder.decoder_block.{layer}."
            value = self._block(value, prefix, "weight", layout.STACK_DILATION, tensors)
        return self._conv(value, "out_conv.", {"out_conv.weight": folded_output(tensors)})

    @staticmethod
    def _layers(tensors: Tensors, prefix: str) -> int:
        return sum(name.startswith(prefix) and "dwconv.weight" in name for name in tensors)

    def _backbone(self, mel: str, tensors: Tensors) -> str:
        value = self._conv(mel, "backbone.embed.", tensors)
        value = self._norm(value, "backbone.norm.", tensors)
        for layer in range(self.checkpoint.vocos.num_layers):
            value = self._block(value, f"backbone.convnext.{layer}.", "gamma", 1, tensors)
        value = self._norm(value, "backbone.final_layer_norm.", tensors)
        head = {name: pad_bins(tensors[name]) for name in ("head.out.weight", "head.out.bias")}
        return self._linear(value, "head.out.", head)

    def _block(self, rows: str, prefix: str, scale: str, dilation: int, tensors: Tensors) -> str:
        """Add one ConvNeXt block; its layer scale is folded into the second linear layer."""
        weight = tensors[f"{prefix}dwconv.weight"]
        reach, width = weight.shape[2] // 2 * dilation, len(weight)
        frames = self.stream.extend(self.stream.spread(rows, width), 2 * reach, width)
        self.stream.lag += reach
        convolved = self._depthwise(frames, f"{prefix}dwconv.", dilation, tensors)
        inner = self._norm(self.stream.take(convolved, width), f"{prefix}norm.", tensors)
        inner = self._gelu(self._linear(inner, f"{prefix}pwconv1.", tensors))
        inner = self._linear(inner, f"{prefix}pwconv2.", tensors, tensors[f"{prefix}{scale}"])
        before = self.stream.take(self.stream.cut(frames, reach, -reach), width)
        return self.graph.node("Add", [before, inner])

    def _linear(self, value: str, prefix: str, tensors: Tensors, scale: Array | None = None) -> str:
        weight, bias = tensors[f"{prefix}weight"], tensors[f"{prefix}bias"]
        if scale is not None:
            weight, bias = weight * scale[:, None], bias * scale
        graph = self.graph
        product = graph.node("MatMul", [value, graph.constant(f"{prefix}weight", weight.T)])
        return graph.node("Add", [product, graph.constant(f"{prefix}bias", bias)])

    def _norm(self, value: str, prefix: str, tensors: Tensors) -> str:
        weights = [
            self.graph.constant(f"{prefix}{name}", tensors[f"{prefix}{name}"])
            for name in ("weight", "bias")
        ]
        return self.graph.node(
            "LayerNormalization", [value, *weights], epsilon=layout.NORM_EPS, axis=-1
        )

    def _gelu(self, value: str) -> str:
        """Return x * (1 + erf(x / sqrt 2)) / 2, a pattern the runtime fuses."""
        graph = self.graph
        root = graph.constant("sqrt_2", np.float32(np.sqrt(2)))
        erf = graph.node("Erf", [graph.node("Div", [value, root])])
        plus = graph.node("Add", [erf, graph.constant("one", np.float32(1))])
        return graph.node(
            "Mul", [graph.node("Mul", [value, plus]), graph.constant("half", np.float32(0.5))]
        )

    def _conv(self, rows: str, prefix: str, tensors: Tensors) -> str:
        """Convolve over all channels, a matrix product over shifted copies side by side."""
        graph, stream = self.graph, self.stream
        weight = tensors[f"{prefix}weight"]
        outputs, inputs, taps = weight.shape
        frames = stream.extend(stream.spread(rows, inputs), taps - 1, inputs)
        stream.lag += taps // 2
        copies = [stream.cut(frames, tap, tap + 1 - taps or END) for tap in range(taps)]
        beside = stream.take(graph.node("Concat", copies, axis=-1), taps * inputs)
        matrix = weight.transpose(2, 1, 0).reshape(-1, outputs)
        product = graph.node("MatMul", [beside, graph.constant(f"{prefix}weight", matrix)])
        if f"{prefix}bias" not in tensors:
            return product
        bias = graph.constant(f"{prefix}bias", tensors[f"{prefix}bias"])
        return graph.node("Add", [product, bias])

    def _depthwise(self, frames: str, prefix: str, dilation: int, tensors: Tensors) -> str:
        """Convolve each channel by itself, as an image of one line: the runtime's fast path."""
        graph = self.graph
        weight = tensors[f"{prefix}weight"]
        line = graph.integers(1)
        image = graph.node("Unsqueeze", [frames, line])
        image = graph.node(
            "Conv",
            [
                graph.node("Transpose", [image], perm=(0, 3, 1, 2)),
                graph.constant(f"{prefix}weight", weight[:, :, None]),
                graph.constant(f"{prefix}bias", tensors[f"{prefix}bias"]),
            ],
            group=len(weight),
            kernel_shape=(1, weight.shape[2]),
            dilations=(1, dilation),
        )
        return graph.node("Squeeze", [graph.node("Transpose", [image], perm=(0, 2, 3, 1)), line])


def write_hidden_vocoder(checkpoint: Checkpoint) -> Vocoder:
    """Write the path from hidden states: `hidden` (B, T, H) float32."""
    return _VocoderWriter(checkpoint).write_hidden()


def write_code_vocoder(checkpoint: Checkpoint) -> Vocoder:
    """Write the path from codes: `codes` (B, T, 4) int32 in 0 ... 624."""
    return _VocoderWriter(checkpoint).write_codes()
