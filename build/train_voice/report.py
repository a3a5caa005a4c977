"""A page about a run: what it made, how well that speaks, and how the losses fell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
from layout import HOP, SAMPLE_RATE

from train_voice.about import PROVENANCE_FILE
from train_voice.features import speech_mel
from train_voice.speaking import CheckpointSpeaker
from train_voice.starting_point import chain
from train_voice.synthesis import teacher_speech
from train_voice.training import read_log

TRAINED = ("dvae", "vocos", "gpt")
"""The stages that have a log of losses."""
EVALUATION_FILE = "evaluation.json"
REPORT_FILE = "report.md"
SHOWN = {"en": ("slt", "the train to london leaves at half past seven."),
         "zh": ("cmn", "今天是五月三号，星期天。")}  # fmt: skip
NOT_LOSSES = frozenset({"step", "seconds", "rate", "codes_used"})


def write(work: Path, checkpoint: Path) -> Path:
    """Write the report of a run into its work folder; return the page."""
    # no display is needed
    mpl.use("agg")
    _plot_losses(work)
    _plot_spectrograms(work / "spectrograms.png", checkpoint)
    evaluation = json.loads((work / EVALUATION_FILE).read_text(encoding="utf-8"))
    provenance = json.loads((checkpoint / PROVENANCE_FILE).read_text(encoding="utf-8"))
    path = work / REPORT_FILE
    path.write_text(_page(evaluation, provenance, checkpoint), encoding="utf-8")
    return path


def _page(evaluation: dict[str, Any], provenance: dict[str, Any], checkpoint: Path) -> str:
    size = sum(path.stat().st_size for path in (checkpoint / "asset").rglob("*"))
    english, mandarin = evaluation["en"], evaluation["zh"]
    rows = [
        ("weights", f"{size / 1e6:.1f} MB"),
        ("speech learnt from", f"{provenance['hours']} hours"),
        ("steps", _steps(provenance)),
        *(("… of the voice it went on from", _steps(facts))
          for facts in chain(provenance.get("start"))),
        (f"English words heard right, of {english['words']}", f"{english['word_accuracy']:.1%}"),
        *((f"… {split}", f"{value:.1%}")
          for split, value in english["word_accuracy_by_split"].items()),
        ("… the teacher's", f"{english['teacher_accuracy']:.1%}"),
        ("… after DVAE and Vocos alone", f"{english['resynthesis_accuracy']:.1%}"),
        (f"Mandarin nearest to its own sentence, of {mandarin['sentences']}",
         f"{mandarin['nearest_teacher']:.1%}"),
        ("ended by themselves", f"{english['ended']:.1%}, {mandarin['ended']:.1%}"),
        ("longer than the teacher", f"{english['duration_ratio']['mean']}, "
         f"{mandarin['duration_ratio']['mean']} times"),
        *((f"voice {name} told from the other", f"{value:.1%}")
          for name, value in evaluation["voices"].items()),
    ]  # fmt: skip
    table = "\n".join(f"| {name} | {value} |" for name, value in rows)
    return (
        f"# The voice of this run\n\nCommit {provenance['commit']}, seed {provenance['seed']}, "
        f"{provenance['date']}.\n\n| what | value |\n|---|---|\n{table}\n\n"
        "![losses](losses.png)\n\n![spectrograms](spectrograms.png)\n"
    )


def _steps(provenance: dict[str, Any]) -> str:
    return ", ".join(f"{name} {count}" for name, count in provenance["steps"].items())


def _plot_losses(work: Path) -> None:
    from matplotlib import pyplot

    figure, plots = pyplot.subplots(1, len(TRAINED), figsize=(16, 4), layout="constrained")
    for plot, stage in zip(plots, TRAINED, strict=True):
        lines = read_log(work / stage)
        names = sorted({name for line in lines for name in line} - NOT_LOSSES)
        for name in names:
            points = [(line["step"], line[name]) for line in lines if name in line]
            plot.plot(*zip(*points, strict=True), label=name, linewidth=1)
        plot.set(title=stage, xlabel="step")
        if names:
            plot.legend(fontsize=7)
    figure.savefig(work / "losses.png", dpi=100)
    pyplot.close(figure)


def _plot_spectrograms(path: Path, checkpoint: Path) -> None:
    """Draw teacher and voice below each other, for one sentence per language."""
    from matplotlib import pyplot

    speaker = CheckpointSpeaker(checkpoint)
    figure, plots = pyplot.subplots(2, len(SHOWN), figsize=(12, 6), layout="constrained")
    for column, (voice, (teacher, text)) in enumerate(SHOWN.items()):
        waves = {"teacher": teacher_speech(teacher, text)}
        waves["voice"] = speaker.say([text], voice)[0].samples
        for row, (name, samples) in enumerate(waves.items()):
            plot = plots[row][column]
            mel = speech_mel(samples).T
            seconds = mel.shape[1] * HOP / SAMPLE_RATE
            extent = (0, seconds, 0, len(mel))
            plot.imshow(mel, origin="lower", aspect="auto", interpolation="nearest", extent=extent)
            plot.set(title=f"{voice}: {name}", xlabel="seconds", ylabel="mel bin")
    figure.savefig(path, dpi=100)
    pyplot.close(figure)
