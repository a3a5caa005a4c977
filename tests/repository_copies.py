"""Copies of a built model repository with other parameters, and with faults in them."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import faults
from conftest import ROOT


def copy_repository(source: Path, target: Path, **parameters: int) -> Path:
    """Copy a repository, some parameters of its config.pbtxt files changed; return the copy."""
    shutil.copytree(source, target)
    configs = {path: path.read_text() for path in target.glob("*/config.pbtxt")}
    for key, value in parameters.items():
        pattern = rf'(key: "{key}" value: {{ string_value: )"\w+"'
        num_changed = 0
        for path, text in configs.items():
            configs[path], num_here = re.subn(pattern, rf'\1"{value}"', text)
            num_changed += num_here
        assert num_changed == 1, key
    for path, text in configs.items():
        path.write_text(text)
    return target


def add_faults(
    repository: Path,
    engine: Mapping[int, faults.EngineFault],
    front: Mapping[int, faults.FrontFault],
) -> None:
    """Let requests with some seeds go wrong in a copied repository.

    Nothing else is changed, except that the vocoder's batches fail whole.

    Args:
        repository: the copy.
        engine: seeds of chattts_gpt's requests.
        front: seeds of chattts' requests.
    """
    engine_package = repository / "chattts_gpt/1/chattts_engine"
    _patch(engine_package, engine_package / "loading.py", f"install_engine({dict(engine)})")
    front_package = repository / "chattts/1/chattts_pipeline"
    front_call = f"install_front({dict(front)}, Vocoder)"
    _patch(front_package, front_package.parent / "model.py", front_call)
    _put_vocoder_in_repository(repository / "chattts_vocoder")


def _put_vocoder_in_repository(model: Path) -> None:
    """Make the stand-in of its backend the model's own code, and patch that."""
    config = model / "config.pbtxt"
    config.write_text(config.read_text().replace('backend: "onnxruntime"', 'backend: "python"'))
    code = model / "1" / "model.py"
    shutil.copy(ROOT / "embedded" / "backends" / "onnxruntime" / "model.py", code)
    lines = "def model_file(config, folder):\n    return folder / 'model.onnx'\n"
    _append(code, lines + "\nimport faults\nfaults.install_vocoder(TritonPythonModel)\n")
    shutil.copy(faults.__file__, code.parent / "faults.py")


def _patch(package: Path, module: Path, call: str) -> None:
    """Copy faults.py into a package and let a module that is always loaded install them."""
    shutil.copy(faults.__file__, package / "faults.py")
    _append(module, f"from {package.name} import faults\n\nfaults.{call}\n")


def _append(module: Path, lines: str) -> None:
    with module.open("a", encoding="utf-8") as file:
        file.write(f"\n\n{lines}")
