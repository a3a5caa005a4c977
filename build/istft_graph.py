"""Nodes of the inverse STFT over streams: a matrix product, and an overlap-add of quarter frames.

The matrix is the inverse DFT with the window folded in. The sum of squared windows is added up from
the mask, so both ends of a segment are exact at every length.
"""

from __future__ import annotations

import numpy as np
from checkpoint import Array
from layout import HOP, N_FFT, NUM_BINS
from onnx_graph import GraphWriter
from stream_graph import END, Stream

MAX_MAGNITUDE = 100.0
"""Vocos clips the magnitudes of the spectrum here."""
PADDED_BINS = -(-NUM_BINS // 16) * 16
"""Bins as the graph computes them. The runtime's sine and cosine round the last elements of an
array differently from the others when the count is no multiple of the vector width; then a row
would depend on what it is batched with."""
QUARTERS = N_FFT // HOP
SMALLEST_ENVELOPE = np.float32(1e-6)
"""Far below any sum of squared windows inside a segment; outside it keeps 0 / 0 away."""


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


def windowed_frames(graph: GraphWriter, head: str, window: Array) -> str:
    """Turn rows of log magnitudes and phases (rows, 2 * padded bins) into rows (rows, n_fft)."""
    log_magnitude, phase = graph.nodes("Split", [head], ["log_magnitude", "phase"], axis=-1)
    limit = graph.constant("max_magnitude", np.float32(MAX_MAGNITUDE))
    magnitude = graph.node("Min", [graph.node("Exp", [log_magnitude]), limit])
    parts = [
        graph.node("Mul", [magnitude, graph.node(function, [phase])]) for function in ("Cos", "Sin")
    ]
    matrix = graph.constant("inverse_dft", inverse_dft(window))
    return graph.node("MatMul", [graph.node("Concat", parts, axis=-1), matrix])


def overlap_add(graph: GraphWriter, stream: Stream, rows: str, window: Array, lag: int) -> str:
    """Add windowed rows (rows, n_fft) at a hop's distance; return audio (batch, frames, hop).

    Piece j of a segment is the sum of quarter 0 of frame j + 2, 1 of j + 1, 2 of j and 3 of j - 1;
    what the centred transform cuts off at both ends, n_fft / 2 samples, is no piece. `lag` is the
    lag of the pieces: at least two frames more than the rows'.
    """
    newest = lag - QUARTERS // 2
    late = newest - stream.lag
    frames = stream.extend(stream.spread(rows, N_FFT), QUARTERS - 1 + late, N_FFT)
    quarters = []
    for quarter in range(QUARTERS):
        starts = graph.integers(QUARTERS - 1 - quarter, quarter * HOP)
        ends = graph.integers(-quarter - late or END, (quarter + 1) * HOP)
        quarters.append(graph.node("Slice", [frames, starts, ends, graph.integers(1, 2)]))
    masks = [stream.mask(newest + quarter) for quarter in range(QUARTERS)]
    square = np.square(window.astype(np.float64)).astype(np.float32).reshape(QUARTERS, HOP)
    squares = graph.constant("window_square", square)
    envelope = graph.node("MatMul", [graph.node("Concat", masks, axis=-1), squares])
    smallest = graph.constant("smallest_envelope", SMALLEST_ENVELOPE)
    audio = graph.node(
        "Div", [graph.node("Sum", quarters), graph.node("Max", [envelope, smallest])]
    )
    # a piece needs its two middle frames; then one quarter may be missing at either end
    return graph.node("Mul", [audio, graph.node("Mul", masks[1:3])])
