"""Write the vocoder as an ONNX graph that is run chunk by chunk: hidden states or codes -> audio.

Each step is computed once: every convolution takes the last frames of its input from `state` and
leaves the newest ones in `next_state` (stream_graph.py). A convolution pads with zeros at both ends
of a segment, so whatever stands outside the segment is set to zero before each of them.

Everything is channel-last, (batch, frames, channels), so that linear layers are plain matrix
products; convolutions over all channels are matrix products over shifted copies. The inverse STFT
is a matrix product (inverse DFT with the window folded in) and an overlap-add of quarter frames.
"""

from __future__ import annotations

from dataclasses import dataclass

import layout
import numpy as np
from checkpoint import Array, Checkpoint, Tensors
from layout import HOP, N_FFT, NUM_BINS
from onnx_graph import INT32, GraphWriter
from stream_graph import END, FrameMask, StreamState, cut

MAX_MAGNITUDE = 100.0
"""Vocos clips the magnitudes of the spectrum here."""
RESIDUAL_SCALE = 1 / 4
"""Weight of the second residual stage, as in force when the published weights were made."""
PADDED_BINS = -(-NUM_BINS // 16) * 16
"""Bins as the graph computes them. The runtime's sine and cosine round the last elements of an
array differently from the others when the count is no multiple of the vector width; then a row
would depend on what it is batched with."""
QUARTERS = N_FFT // HOP
SMALLEST_ENVELOPE = np.float32(1e-6)
"""Far below any overlap-added squared window inside a segment; outside it keeps 0 / 0 away."""


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
    """Writes one vocoder graph. Values are names of (batch, frames, channels) tensors."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.checkpoint = checkpoint
        self.graph = GraphWriter("chattts_vocoder")
        self.lag = 0
        """Frames by which the newest value is behind the input."""

    def write_hidden(self) -> Vocoder:
        graph = self.graph
        hidden = graph.input("hidden", ("batch", "steps", "hidden_size"))
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
        """Declare mask and state; the overlap-add sees the longest lag, a whole number of steps."""
        steps = self.graph.input("mask", ("batch", "steps"))
        self.state = StreamState(self.graph)
        self.total_lag = layout.FRAMES_PER_STEP * self.checkpoint.context_steps
        self.mask = FrameMask(
            self.graph, self.state, steps, layout.FRAMES_PER_STEP, self.total_lag + 1
        )

    def _finish(self, mel: str) -> Vocoder:
        tensors = self.checkpoint.load("Vocos")
        value = self._backbone(mel, tensors)
        audio = self._overlap_add(self._frames(value, tensors), tensors)
        self.graph.node("Reshape", [audio, self.graph.integers(0, -1)], "audio")
        self.graph.output("audio", ("batch", "samples"))
        self.state.finish()
        self.graph.metadata("state_size", self.state.size)
        self.graph.metadata("context_steps", self.checkpoint.context_steps)
        return Vocoder(self.graph.serialize(), self.state.size)

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
        value = self._gelu(self._conv(self._masked(frames), "decoder.conv_in.0.", tensors))
        value = self._masked(self._conv(self._masked(value), "decoder.conv_in.2.", tensors))
        for layer in range(self._layers(tensors, "decoder.decoder_block.")):
            prefix = f"decoder.decoder_block.{layer}."
            value = self._block(value, prefix, "weight", layout.STACK_DILATION, tensors)
        folded = {"out_conv.weight": folded_output(tensors)}
        return self._conv(value, "out_conv.", folded)

    @staticmethod
    def _layers(tensors: Tensors, prefix: str) -> int:
        return sum(name.startswith(prefix) and "dwconv.weight" in name for name in tensors)

    def _backbone(self, mel: str, tensors: Tensors) -> str:
        value = self._conv(self._masked(mel), "backbone.embed.", tensors)
        value = self._masked(self._norm(value, "backbone.norm.", tensors))
        for layer in range(self.checkpoint.vocos.num_layers):
            value = self._block(value, f"backbone.convnext.{layer}.", "gamma", 1, tensors)
        value = self._norm(value, "backbone.final_layer_norm.", tensors)
        head = {name: pad_bins(tensors[name]) for name in ("head.out.weight", "head.out.bias")}
        return self._linear(value, "head.out.", head)

    def _masked(self, value: str) -> str:
        """Set what is no frame of the segment to zero."""
        return self.graph.node("Mul", [value, self.mask.at(self.lag)])

    def _block(self, value: str, prefix: str, scale: str, dilation: int, tensors: Tensors) -> str:
        """Add one ConvNeXt block; its layer scale is folded into the second linear layer."""
        graph = self.graph
        weight = tensors[f"{prefix}dwconv.weight"]
        reach = weight.shape[2] // 2 * dilation
        joined = self.state.extend(value, 2 * reach, len(weight))
        self.lag += reach
        inner = self._depthwise(joined, f"{prefix}dwconv.", dilation, tensors)
        inner = self._norm(inner, f"{prefix}norm.", tensors)
        inner = self._gelu(self._linear(inner, f"{prefix}pwconv1.", tensors))
        inner = self._linear(inner, f"{prefix}pwconv2.", tensors, tensors[f"{prefix}{scale}"])
        return graph.node("Add", [cut(graph, joined, reach, -reach), self._masked(inner)])

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

    def _conv(self, value: str, prefix: str, tensors: Tensors) -> str:
        """Convolve over all channels, a matrix product over shifted copies side by side."""
        graph = self.graph
        weight = tensors[f"{prefix}weight"]
        outputs, inputs, taps = weight.shape
        joined = self.state.extend(value, taps - 1, inputs)
        self.lag += taps // 2
        copies = [cut(graph, joined, tap, tap + 1 - taps or END) for tap in range(taps)]
        matrix = weight.transpose(2, 1, 0).reshape(-1, outputs)
        beside = graph.node("Concat", copies, axis=-1)
        product = graph.node("MatMul", [beside, graph.constant(f"{prefix}weight", matrix)])
        if f"{prefix}bias" not in tensors:
            return product
        bias = graph.constant(f"{prefix}bias", tensors[f"{prefix}bias"])
        return graph.node("Add", [product, bias])

    def _depthwise(self, joined: str, prefix: str, dilation: int, tensors: Tensors) -> str:
        """Convolve each channel by itself, as an image of one line: the runtime's fast path."""
        graph = self.graph
        weight = tensors[f"{prefix}weight"]
        line = graph.integers(1)
        image = graph.node("Unsqueeze", [joined, line])
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

    def _frames(self, value: str, tensors: Tensors) -> str:
        """Turn log magnitudes and phases into windowed frames (batch, frames, n_fft)."""
        graph = self.graph
        log_magnitude, phase = graph.nodes("Split", [value], ["log_magnitude", "phase"], axis=-1)
        limit = graph.constant("max_magnitude", np.float32(MAX_MAGNITUDE))
        magnitude = graph.node("Min", [graph.node("Exp", [log_magnitude]), limit])
        magnitude = self._masked(magnitude)
        parts = [
            graph.node("Mul", [magnitude, graph.node(function, [phase])])
            for function in ("Cos", "Sin")
        ]
        matrix = graph.constant("inverse_dft", inverse_dft(tensors["head.istft.window"]))
        return graph.node("MatMul", [graph.node("Concat", parts, axis=-1), matrix])

    def _overlap_add(self, frames: str, tensors: Tensors) -> str:
        """Add frames (batch, F, n_fft) at a hop's distance: audio (batch, F, hop).

        Row j of a segment is the sum of quarter 0 of frame j + 2, 1 of j + 1, 2 of j, 3 of j - 1;
        what the centred transform cuts off at both ends, n_fft / 2 samples, has no row.
        """
        graph = self.graph
        newest = self.total_lag - QUARTERS // 2
        """Lag of the frame whose first quarter is added."""
        late = newest - self.lag
        joined = self.state.extend(frames, QUARTERS - 1 + late, N_FFT)
        quarters = []
        for quarter in range(QUARTERS):
            starts = graph.integers(QUARTERS - 1 - quarter, quarter * HOP)
            ends = graph.integers(-quarter - late or END, (quarter + 1) * HOP)
            quarters.append(graph.node("Slice", [joined, starts, ends, graph.integers(1, 2)]))
        masks = [self.mask.at(newest + quarter) for quarter in range(QUARTERS)]
        square = np.square(tensors["head.istft.window"].astype(np.float64)).astype(np.float32)
        window = graph.constant("window_square", square.reshape(QUARTERS, HOP))
        envelope = graph.node("MatMul", [graph.node("Concat", masks, axis=-1), window])
        smallest = graph.constant("smallest_envelope", SMALLEST_ENVELOPE)
        audio = graph.node(
            "Div", [graph.node("Sum", quarters), graph.node("Max", [envelope, smallest])]
        )
        is_inside = graph.node("Mul", masks[1:3])
        return graph.node("Mul", [audio, is_inside])


def write_hidden_vocoder(checkpoint: Checkpoint) -> Vocoder:
    """Write the path from hidden states: `hidden` (B, T, H) float32."""
    return _VocoderWriter(checkpoint).write_hidden()


def write_code_vocoder(checkpoint: Checkpoint) -> Vocoder:
    """Write the path from codes: `codes` (B, T, 4) int32 in 0 ... 624."""
    return _VocoderWriter(checkpoint).write_codes()
