"""What a run needs on disk: checkpoint, repositories, environments of the baselines.

Everything lies in one cache folder outside the checkout and is made once.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from .built import Built
from .plan import Kind

_CHECKOUT = Path(__file__).resolve().parents[2]
_SEED = 0

# What each baseline's environment holds, in the order of installation. The published package is
# installed without its dependencies' choice of torch; torchaudio's wheel is linked against CUDA.
_PACKAGES: dict[Kind, tuple[tuple[str, ...], ...]] = {
    "llama": (("torch==2.13.0", "transformers==4.57.1", "numpy==2.2.6", "safetensors==0.8.0"),),
    "published": (
        ("torch==2.13.0", "transformers==4.57.1", "numpy==2.2.6", "safetensors==0.8.0"),
        (
            "einops==0.8.2",
            "einx==0.4.3",
            "encodec==0.1.1",
            "numba==0.68.1",
            "pybase16384==0.3.9",
            "scipy==1.17.1",
            "setuptools==84.2.1",
        ),
        (
            "--no-deps",
            "--no-build-isolation",
            "chattts==0.2.5",
            "torchaudio==2.11.1",
            "vector-quantize-pytorch==1.25.2",
            "vocos==0.1.0",
        ),
    ),
}


def full_checkpoint(work: Path) -> Path:
    """Return the untrained checkpoint at the published size, made if it is not there."""
    checkpoint = work / "full"
    if not (checkpoint / "voices").exists():  # also one from before voices were files
        _build("make_checkpoint.py", "--size", "full", "--seed", str(_SEED), "--output", checkpoint)
    return checkpoint


def repository(work: Path, checkpoint: Path, precision: str) -> Built:
    """Return a model repository of the checkpoint, brought up to date with this checkout."""
    folder = work / f"repository-{checkpoint.name}-{precision}"
    folder.mkdir(parents=True, exist_ok=True)
    _build(
        "build_repository.py",
        *("--checkpoint", checkpoint, "--output", folder, "--precision", precision),
    )
    return Built(folder)


def baseline_python(work: Path, baseline: Kind) -> Path:
    """Return the interpreter of a baseline's environment, made if it is not there."""
    folder = work / f"venv-{baseline}"
    python = folder / "bin" / "python"
    stamp = folder / "installed"
    wanted = repr(_PACKAGES[baseline])
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return python
    _run([sys.executable, "-m", "venv", "--clear", folder])
    for packages in _PACKAGES[baseline]:
        _run([python, "-m", "pip", "install", "--quiet", *packages])
    for extension in folder.glob("lib/python*/site-packages/torchaudio/lib/*.so"):
        # Linked against CUDA; without them torchaudio imports and computes in torch.
        extension.unlink()
    stamp.write_text(wanted, encoding="utf-8")
    return python


def _build(script: str, *arguments: str | Path) -> None:
    _run([sys.executable, _CHECKOUT / "build" / script, *arguments])


def _run(command: Sequence[str | Path]) -> None:
    """Run a command; its output is progress."""
    subprocess.run(list(map(str, command)), check=True, stdout=sys.stderr)
