"""Where a voice comes from, beside its weights: provenance for programs, a README for people."""

from __future__ import annotations

import json
import platform
import subprocess
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from files import sha256, write_bytes, write_json

from train_voice.corpus import vocabulary
from train_voice.recognizer import EVALUATION_FOLDER
from train_voice.settings import Settings
from train_voice.speakers import VOICES

PROVENANCE_FILE = "provenance.json"
README_FILE = "README.md"
LICENSE_FILE = "LICENSE.txt"
_HERE = Path(__file__).parent
_CMUDICT_LICENSE = _HERE / "cmudict-license.txt"
_README = _HERE / "checkpoint-readme.md"
"""With places for `str.format`."""
_PACKAGES = ("torch", "numpy", "pypinyin", "soxr", "tokenizers", "pocketsphinx", "safetensors")
_DEBIAN_PACKAGES = ("flite", "libflite1", "espeak-ng", "libespeak-ng1", "espeak-ng-data")
_LISTS = frozenset({"errors", "misses"})
"""What an evaluation lists sentence by sentence: no figures."""

_FIGURES = """
Of the {en[words]} words in {en[sentences]} English held-out sentences a recognizer that knows only
the voice's words hears {en[word_accuracy]:.1%} right (of the teacher's {en[teacher_accuracy]:.1%}).
Of {zh[sentences]} Mandarin ones {zh[nearest_teacher]:.1%} are nearest to their own recording of the
teacher. Speech ends by itself in {en[ended]:.1%} and {zh[ended]:.1%}. (In the process that trained
it; `build/evaluate_voice.py` asks a server.)
"""


def write_provenance(
    root: Path, settings: Settings, sentences: Path, facts: dict[str, Any], date: str
) -> None:
    """Write where the weights come from.

    Args:
        root: the checkpoint's folder.
        settings: of the run.
        sentences: the file of its corpus.
        facts: hours and number of utterances, steps of each stage, provenance of the voice that it
            started from, if any.
        date: of the export.
    """
    content = {
        "settings": settings.name,
        "seed": settings.seed,
        "corpus": {**asdict(settings.corpus), "sha256": sha256(sentences)},
        "date": date,
        "commit": _output("git", "rev-parse", "HEAD"),
        "changed_since_commit": _output("git", "status", "--porcelain", "..") != "",
        "machine": platform.machine(),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in _PACKAGES},
        "teachers": {
            name: _output("dpkg-query", "-W", "-f", "${Version}", name) for name in _DEBIAN_PACKAGES
        },
        **facts,
    }
    write_json(root / PROVENANCE_FILE, content)


def add_figures(root: Path, evaluation: dict[str, Any]) -> None:
    """Add what an evaluation found to the provenance and the page."""
    provenance = json.loads((root / PROVENANCE_FILE).read_text(encoding="utf-8"))
    write_json(root / PROVENANCE_FILE, {**provenance, "figures": _without_lists(evaluation)})
    write_readme(root)


def write_readme(root: Path) -> None:
    """Write the page for people, and the license of the dictionary.

    Args:
        root: the checkpoint's folder, with its provenance.
    """
    provenance = json.loads((root / PROVENANCE_FILE).read_text(encoding="utf-8"))
    size = sum(path.stat().st_size for path in (root / "asset").rglob("*") if path.is_file())
    figures = provenance.get("figures")
    text = _README.read_text(encoding="utf-8").format(
        megabytes=size / 1e6,
        hours=provenance["hours"],
        origin=_origin(provenance.get("start")),
        voices=", ".join(f"`{voice.name}` ({voice.description})" for voice in VOICES),
        english=len(vocabulary("en")),
        mandarin=len(vocabulary("zh")),
        figures=_FIGURES.format(**figures) if figures else "",
    )
    write_bytes(root / README_FILE, text.encode())
    write_bytes(root / EVALUATION_FOLDER / LICENSE_FILE, _CMUDICT_LICENSE.read_bytes())


def _origin(start: dict[str, Any] | None) -> str:
    if start is None:
        return "from random weights"
    return (
        f"going on from a voice of commit {start['commit'][:7]}, which was trained on "
        f"{start['hours']} hours, {_origin(start.get('start'))}"
    )


def _without_lists(evaluation: dict[str, Any]) -> dict[str, Any]:
    return {
        part: {name: value for name, value in figures.items() if name not in _LISTS}
        for part, figures in evaluation.items()
    }


def _output(*command: str) -> str:
    """Return what a command prints, or "unknown" where it is missing or fails."""
    try:
        run = subprocess.run(command, check=True, capture_output=True, text=True, cwd=_HERE)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return run.stdout.strip()
