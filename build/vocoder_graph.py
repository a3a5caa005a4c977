"""Write the vocoder as an ONNX graph: hidden states or codes -> mel -> waveform.

Standard operators only. Everything is channel-last, (batch, frames, channels), so that linear
layers are plain matrix products; convolutions over all channels are matrix products over shifted
copies. The inverse STFT is a matrix product (inverse DFT with the window folded in) and an
overlap-add of quarter frames; the envelope of squared windows is added up by the same code, so both
ends are exact at every length.
"""

from __future__ import annotations

import layout
import numpy as np
from checkpoint import Array, Checkpoint, Tensors
from layout import HOP, N_FFT, NUM_BINS
from onnx_graph import INT32, GraphWriter

MAX_MAGNITUDE = 100.0
"""Vocos clips the magnitudes of the spectrum here."""
RESIDUAL_SCALE = 1 / 4
"""Weight of the second residual stage, as in force when the published weights were made."""
PADDED_BINS = -(-NUM_BINS // 16) * 16
"""Bins as the graph computes them. The runtime's sine and cosine round the last elements of an
array differently from the others when the count is no multiple of the vector width; then a row
would depend on what it is batched with."""
END = np.iinfo(np.int64).max


def code_values() -> Array:
    """Return the (codes, digits) float32 table of what a code means, each number in -1 ... 1."""
    powers = layout.LEVELS ** np.arange(layout.DIGITS)
    digits = np.arange(layout.NUM_CODES)[:, None] // powers % layout.LEVELS
    middle = layout.LEVELS // 2
    values: Array = ((digits - middle) / middle).astype(np.float32)
    return values


def inverse_dft(window: Array) -> Array:
    """Return the (2 * padded bins, n_fft) float32 matrix: real, imaginary parts -> windowed frame.

    The imaginary parts of the first and last bin have no effect. Computed in float64.
    """
    angle = 2 * np.pi / N_FFT * np.outer(np.arange(NUM_BINS), np.arange(N_FFT))
    weight = np.full((NUM_BINS, 1), 2 / N_FFT)
    weight[[0, -1]] = 1 / N_FFT
    real = weight * np.cos(angle)
    imaginary = -weight * np.sin(angle)
    imaginary[[0, -1]] = 0
    matrix = np.concatenate([real, imaginary]) * window.astype(np.float64)
    return pad_bins(matrix.astype(np.float32))


def pad_bins(rows: Array) -> Array:
    """Widen the first axis from twice the bins to twice the padded bins with zeros."""
    halves = np.split(rows, 2)
    empty = np.zeros((PADDED_BINS - NUM_BINS, *rows.shape[1:]), np.float32)
    return np.concatenate([halves[0], empty, halves[1], empty])


class _VocoderWriter:
    """Writes one vocoder graph. Values are names of (batch, frames, channels) tensors."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.checkpoint = checkpoint
        self.graph = GraphWriter("chattts_vocoder")

    def write_hidden(self) -> bytes:
        graph = self.graph
        hidden = graph.input("hidden", ("batch", "steps", "hidden_size"))
        tensors = self.checkpoint.load("Decoder")
        return self._finish(self._decode(hidden, tensors))

    def write_codes(self) -> bytes:
        graph = self.graph
        codes = graph.input("codes", ("batch", "steps", layout.NUM_CODEBOOKS), INT32)
        tensors = self.checkpoint.load("DVAE")
        groups = [self._dequantize(codes, tensors, group) for group in range(layout.GROUPS)]
        return self._finish(self._decode(graph.node("Concat", groups, axis=-1), tensors))

    def _finish(self, mel: str) -> bytes:
        tensors = self.checkpoint.load("Vocos")
        frames = self._frames(self._backbone(mel, tensors), tensors)
        total = self._overlap_add(frames)
        audio = self.graph.node("Div", [total, self._envelope(frames, tensors)])
        self.graph.node("Reshape", [audio, self.graph.integers(0, -1)], "audio")
        self.graph.output("audio", ("batch", "samples"))
        return self.graph.serialize()

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
        """Turn the (batch, steps, 2 * channels) input of a stack into a (batch, frames, mels)."""
        graph = self.graph
        channels = tensors["decoder.conv_in.0.weight"].shape[1]
        frames = graph.node("Reshape", [features, graph.integers(0, -1, channels)])
        value = self._gelu(self._conv(frames, "decoder.conv_in.0.", tensors))
        value = self._conv(value, "decoder.conv_in.2.", tensors)
        for layer in range(self._layers(tensors, "decoder.decoder_block.")):
            prefix = f"decoder.decoder_block.{layer}."
            value = self._block(value, prefix, "weight", layout.STACK_DILATION, tensors)
        value = self._conv(value, "decoder.conv_out.", tensors)
        coef = graph.constant("coef", tensors["coef"].reshape(-1))
        return graph.node("Mul", [self._conv(value, "out_conv.", tensors), coef])

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

    def _block(self, value: str, prefix: str, scale: str, dilation: int, tensors: Tensors) -> str:
        """Add one ConvNeXt block; its layer scale is folded into the second linear layer."""
        graph = self.graph
        inner = self._depthwise(value, f"{prefix}dwconv.", dilation, tensors)
        inner = self._norm(inner, f"{prefix}norm.", tensors)
        inner = self._gelu(self._linear(inner, f"{prefix}pwconv1.", tensors))
        inner = self._linear(inner, f"{prefix}pwconv2.", tensors, tensors[f"{prefix}{scale}"])
        return graph.node("Add", [value, inner])

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

    def _shifted(self, value: str, taps: int) -> list[str]:
        """Return `taps` copies of `value`: frame f of copy i is frame f + i - taps // 2."""
        graph = self.graph
        pad = taps // 2
        padded = graph.node("Pad", [value, graph.integers(0, pad, 0, 0, pad, 0)])
        copies = []
        for tap in range(taps):
            bounds = [graph.integers(tap), graph.integers(tap - 2 * pad or END)]
            copies.append(graph.node("Slice", [padded, *bounds, graph.integers(1)]))
        return copies

    def _conv(self, value: str, prefix: str, tensors: Tensors) -> str:
        """Convolve over all channels with zero padding that keeps the length."""
        graph = self.graph
        weight = tensors[f"{prefix}weight"]
        outputs, _, taps = weight.shape
        if taps > 1:
            value = graph.node("Concat", self._shifted(value, taps), axis=-1)
        matrix = weight.transpose(2, 1, 0).reshape(-1, outputs)
        product = graph.node("MatMul", [value, graph.constant(f"{prefix}weight", matrix)])
        if f"{prefix}bias" not in tensors:
            return product
        bias = graph.constant(f"{prefix}bias", tensors[f"{prefix}bias"])
        return graph.node("Add", [product, bias])

    def _depthwise(self, value: str, prefix: str, dilation: int, tensors: Tensors) -> str:
        """Convolve each channel by itself, as an image of one line: the runtime's fast path."""
        graph = self.graph
        weight = tensors[f"{prefix}weight"]
        width, _, taps = weight.shape
        pad = taps // 2 * dilation
        line = graph.integers(2)
        image = graph.node("Unsqueeze", [graph.node("Transpose", [value], perm=(0, 2, 1)), line])
        image = graph.node(
            "Conv",
            [
                image,
                graph.constant(f"{prefix}weight", weight[:, :, None]),
                graph.constant(f"{prefix}bias", tensors[f"{prefix}bias"]),
            ],
            group=width,
            kernel_shape=(1, taps),
            dilations=(1, dilation),
            pads=(0, pad, 0, pad),
        )
        return graph.node("Transpose", [graph.node("Squeeze", [image, line])], perm=(0, 2, 1))

    def _frames(self, value: str, tensors: Tensors) -> str:
        """Turn log magnitudes and phases into windowed frames (batch, frames, n_fft)."""
        graph = self.graph
        log_magnitude, phase = graph.nodes("Split", [value], ["log_magnitude", "phase"], axis=-1)
        limit = graph.constant("max_magnitude", np.float32(MAX_MAGNITUDE))
        magnitude = graph.node("Min", [graph.node("Exp", [log_magnitude]), limit])
        parts = [
            graph.node("Mul", [magnitude, graph.node(function, [phase])])
            for function in ("Cos", "Sin")
        ]
        matrix = graph.constant("inverse_dft", inverse_dft(tensors["head.istft.window"]))
        return graph.node("MatMul", [graph.node("Concat", parts, axis=-1), matrix])

    def _overlap_add(self, frames: str) -> str:
        """Add frames (batch, F, n_fft) at a hop's distance; return (batch, F - 1, hop).

        What the centred transform cuts off at both ends, n_fft / 2 samples, is never computed:
        the result's row j is the sum of quarter 0 of frame j + 2, 1 of j + 1, 2 of j, 3 of j - 1.
        """
        graph = self.graph
        padded = graph.node("Pad", [frames, graph.integers(0, 1, 0, 0, 1, 0)])
        quarters = []
        count = N_FFT // HOP
        for quarter in range(count):
            starts = graph.integers(count - 1 - quarter, quarter * HOP)
            ends = graph.integers(-quarter or END, (quarter + 1) * HOP)
            quarters.append(graph.node("Slice", [padded, starts, ends, graph.integers(1, 2)]))
        return graph.node("Sum", quarters)

    def _envelope(self, frames: str, tensors: Tensors) -> str:
        """Return the overlap-added squared window (1, F - 1, hop) for as many frames."""
        graph = self.graph
        square = np.square(tensors["head.istft.window"].astype(np.float64)).astype(np.float32)
        window = graph.constant("window_square", square.reshape(1, 1, N_FFT))
        count = graph.node("Shape", [frames], start=1, end=2)
        one = graph.integers(1)
        shape = graph.node("Concat", [one, count, one], axis=0)
        return self._overlap_add(graph.node("Expand", [window, shape]))


def write_hidden_vocoder(checkpoint: Checkpoint) -> bytes:
    """Return ONNX bytes: `hidden` (B, T, H) float32 -> `audio` (B, 512 T - 256) at 24 kHz."""
    return _VocoderWriter(checkpoint).write_hidden()


def write_code_vocoder(checkpoint: Checkpoint) -> bytes:
    """Return ONNX bytes: `codes` (B, T, 4) int32 in 0 ... 624 -> `audio` (B, 512 T - 256)."""
    return _VocoderWriter(checkpoint).write_codes()
