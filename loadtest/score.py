"""How good recordings sound, estimated: DNSMOS P.835 over a folder of WAV files.

    make score FOLDER=recordings
    python loadtest/score.py recordings

A network trained on listeners' opinions (Reddy, Gopal, Cutler: DNSMOS P.835, ICASSP 2022) gives
1 ... 5 for the speech itself, for how little background there is, and overall. It heard telephone
calls and noise suppressors, so it finds noise, distortion and dropouts; it knows no text and says
nothing about right words or a natural voice. Compare folders with the same texts, not with others'
figures.

Any sample rate; files are brought to 16 kHz mono. A table goes to standard error, one line of JSON
to standard output. Needs the extra `score`, whose package holds the weights; nothing is downloaded.
Exit code: 0 all files are scored, 1 one or more could not be; the others are.
"""

from __future__ import annotations

import argparse
import importlib.resources
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(_ROOT / "build")]

import layout  # noqa: E402
import numpy as np  # noqa: E402
import onnxruntime  # noqa: E402
import soxr  # noqa: E402
from chattts_bench.report import table  # noqa: E402
from numpy.typing import NDArray  # noqa: E402
from recordings import read_recording  # noqa: E402

RATE = 16_000
"""Hz that the network hears."""
WINDOW = 144_160
"""Samples that it hears at once, 9.01 s; its score of a longer file is the mean over windows."""
HOP = RATE
"""Samples from one window to the next."""

# From the network's raw output to the scale of the listeners, as published with it: coefficients
# of x**2, x and 1.
_SIGNAL = (-0.08397278, 1.22083953, 0.0052439)
_BACKGROUND = (-0.13166888, 1.60915514, -0.39604546)
_OVERALL = (-0.06766283, 1.11546468, 0.04602535)


@dataclass(frozen=True)
class Scores:
    """Estimated opinions, about 1 (bad) ... 5 (excellent)."""

    overall: float
    signal: float
    """The speech itself."""
    background: float
    """5: nothing but the speech is heard."""


@dataclass(frozen=True)
class Scored:
    """One file."""

    file: str
    """Its path below the folder."""
    seconds: float
    scores: Scores


class Listener:
    """The network.

    Raises:
        ModuleNotFoundError: the extra `score` is not installed.
    """

    def __init__(self) -> None:
        weights = importlib.resources.files("speechmos") / "dnsmos_models" / "sig_bak_ovr.onnx"
        self._session = onnxruntime.InferenceSession(
            weights.read_bytes(), providers=["CPUExecutionProvider"]
        )
        (self._input,) = (one.name for one in self._session.get_inputs())

    def score(self, samples: NDArray[np.float32]) -> Scores:
        """Score samples (S,) in -1 ... 1 at RATE."""
        outputs = [
            self._session.run(None, {self._input: window[np.newaxis]})[0][0]
            for window in windows(samples)
        ]
        scales = (_SIGNAL, _BACKGROUND, _OVERALL)
        signal, background, overall = (
            round(float(np.mean(np.polyval(scale, raw))), 3)
            for scale, raw in zip(scales, np.transpose(outputs), strict=True)
        )
        return Scores(overall, signal, background)


def windows(samples: NDArray[np.float32]) -> list[NDArray[np.float32]]:
    """Cut samples (S,), S > 0, into windows (WINDOW,); fewer are repeated until they fill one."""
    if len(samples) < WINDOW:
        return [np.resize(samples, WINDOW)]
    return [samples[at : at + WINDOW] for at in range(0, len(samples) - WINDOW + 1, HOP)]


def read(path: Path) -> NDArray[np.float32]:
    """Return the samples (S,) of a WAV file at RATE, clipped to -1 ... 1.

    Raises:
        ValueError: it is no WAV file that can be read, holds no sample, or one is not finite.
        OSError: it cannot be opened.
    """
    samples = read_recording(path)
    if not len(samples):
        raise ValueError(f"{path}: no samples")
    if not np.isfinite(samples).all():
        raise ValueError(f"{path}: a sample is not finite")
    resampled: NDArray[np.float32]
    resampled = soxr.resample(samples, layout.SAMPLE_RATE, RATE, quality="VHQ")
    return resampled.clip(-1.0, 1.0)


def main(argv: Sequence[str] | None = None) -> int:
    """Score a folder."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="of WAV files, also in folders below")
    folder: Path = parser.parse_args(argv).folder
    paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() == ".wav")
    if not paths:
        print(f"score: no WAV file in {folder}", file=sys.stderr)
        return 1
    try:
        listener = Listener()
    except ModuleNotFoundError:
        print(
            "score: no package speechmos; pip install '.[score]' in the checkout", file=sys.stderr
        )
        return 1
    scored: list[Scored] = []
    errors: list[str] = []
    for path in paths:
        try:
            samples = read(path)
        except (ValueError, OSError) as error:
            errors.append(str(error))
            print(f"score: {error}", file=sys.stderr)
            continue
        name, seconds = str(path.relative_to(folder)), round(len(samples) / RATE, 3)
        scored.append(Scored(name, seconds, listener.score(samples)))
    report(scored, errors)
    return int(bool(errors))


def report(scored: Sequence[Scored], errors: Sequence[str]) -> None:
    """Print the table and the line of JSON."""
    values = {one.file: asdict(one.scores) for one in scored}
    means = {
        name: round(float(np.mean([of_file[name] for of_file in values.values()])), 3)
        for name in Scores.__dataclass_fields__
        if scored
    }
    rows = [[one.file, f"{one.seconds:.1f}", *_digits(values[one.file])] for one in scored]
    rows += [["mean", "", *_digits(means)]] if scored else []
    print(table(("file", "s", *means), rows), file=sys.stderr)
    files = [{"file": one.file, "seconds": one.seconds, **values[one.file]} for one in scored]
    print(json.dumps({"files": files, "mean": means, "errors": list(errors)}))


def _digits(scores: Mapping[str, float]) -> list[str]:
    return [f"{score:.2f}" for score in scores.values()]


if __name__ == "__main__":
    sys.exit(main())
