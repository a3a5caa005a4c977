"""A whole training, small enough for a test: from no data to a checkpoint that the build takes."""

from __future__ import annotations

import dataclasses
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import build_runs  # noqa: E402
import evaluate_voice  # noqa: E402
import layout  # noqa: E402
from checkpoint import CheckpointError  # noqa: E402
from conftest import ROOT  # noqa: E402
from files import sha256  # noqa: E402
from safetensors.torch import load_file  # noqa: E402
from train_voice.corpus import GRAMMARS, CorpusSizes  # noqa: E402
from train_voice.english import ENGLISH  # noqa: E402
from train_voice.export import read_tokenizer, read_voice, write_weights  # noqa: E402
from train_voice.settings import FULL, QUICK, Settings, going_on  # noqa: E402
from train_voice.stage_folder import Busy, alone_in  # noqa: E402
from train_voice.stages import Run  # noqa: E402
from train_voice.starting_point import StartError, kept_back  # noqa: E402
from train_voice.training import (  # noqa: E402
    STATE_FILE,
    Schedule,
    StateError,
    read_log,
    trained_steps,
)
from train_voice.work_folder import SENTENCES_FILE, WrongFolder, claim  # noqa: E402
from voice_teachers import needs_teachers  # noqa: E402

TINY = dataclasses.replace(
    QUICK,
    corpus=CorpusSizes(
        sentences={"slt": 24, "rms": 12, "cmn": 16},
        min_counts={"slt": 0, "rms": 0, "cmn": 0},
        held_out=2,
        held_out_templates=1,
    ),
    dvae=Schedule(3, 1e-3),
    vocos=Schedule(4, 1e-3),
    adversarial_from=2,
    gpt=Schedule(9, 1e-3),
    sampling_from=3,
    evaluated=3,
)
LINES: list[str] = []


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("voice")
    run = Run(folder, TINY, LINES.append)
    run.run(list(run.stages))
    return folder


@needs_teachers
def test_every_stage_leaves_its_result(work: Path) -> None:
    for stage, schedule in (("dvae", TINY.dvae), ("vocos", TINY.vocos), ("gpt", TINY.gpt)):
        assert trained_steps(work / stage) == schedule.steps
        assert read_log(work / stage) == []
    page = (work / "report.md").read_text(encoding="utf-8")
    assert "English words heard right" in page
    assert {path.name for path in work.glob("*.png")} == {"losses.png", "spectrograms.png"}
    assert [line for line in LINES if line.startswith("==")] == [
        f"== {name}" for name in Run(work, TINY).stages
    ]


@needs_teachers
def test_a_second_run_has_nothing_to_do(work: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in work.rglob("state.pt")}
    run = Run(work, TINY, lambda line: None)
    run.run(["corpus", "synthesis", "dvae", "vocos", "encode", "gpt"])
    assert {path: path.stat().st_mtime_ns for path in work.rglob("state.pt")} == before


@needs_teachers
def test_a_longer_codec_makes_new_codes_and_all_that_builds_on_them(
    work: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "voice"
    shutil.copytree(work, folder)
    longer = dataclasses.replace(TINY, dvae=Schedule(4, 1e-3))
    results = [folder / "codes" / "codes.npy", folder / "gpt" / STATE_FILE]
    before = [path.stat().st_mtime_ns for path in results]
    Run(folder, longer, lambda line: None).run(["dvae", "encode", "gpt"])
    assert all(path.stat().st_mtime_ns > t for path, t in zip(results, before, strict=True))
    assert trained_steps(folder / "gpt") == TINY.gpt.steps


@needs_teachers
def test_no_voice_is_exported_from_stages_that_do_not_fit(work: Path, tmp_path: Path) -> None:
    folder = tmp_path / "voice"
    shutil.copytree(work, folder)
    longer = dataclasses.replace(TINY, dvae=Schedule(4, 1e-3))
    with pytest.raises(WrongFolder, match=r"of encoder \w{12}, not of encoder \w{12}: run"):
        Run(folder, longer, lambda line: None).run(["dvae", "export"])


@needs_teachers
def test_a_folder_of_other_settings_is_refused(work: Path, tmp_path: Path) -> None:
    other = dataclasses.replace(TINY, seed=9, adversarial_from=1)
    with pytest.raises(WrongFolder, match="made with other seed, adversarial_from: use another"):
        Run(work, other).run(["report"])
    old = tmp_path / "old"
    old.mkdir()
    shutil.copy(work / SENTENCES_FILE, old)
    with pytest.raises(WrongFolder, match="older version"):
        Run(old, TINY).run(["corpus"])


@needs_teachers
def test_a_run_goes_on_from_a_voice_and_learns_a_new_word(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, folder = work / "checkpoint", tmp_path / "voice"
    word = "zebra"
    assert word not in read_tokenizer(start).vocabulary()
    more = dataclasses.replace(ENGLISH, templates=(*ENGLISH.templates, f"good night {word}"))
    monkeypatch.setitem(GRAMMARS, "en", more)
    run = Run(folder, going_on(TINY), lambda line: None, start)
    run.run(["corpus"])
    before, after = read_tokenizer(start), read_tokenizer(run.checkpoint)
    old, new = read_voice(start).model.embed.emb_text.weight, token_model(folder)["emb_text.weight"]
    assert torch.equal(new[after.ids("night")], old[before.ids("night")])
    assert len(after.ids(word)) == 1
    kept = {u.text for u in kept_back(start).held_out}
    assert kept <= {u.text for u in kept_back(run.checkpoint).held_out}
    with pytest.raises(WrongFolder, match="has no codes: run encode first"):
        run.run(["gpt"])
    # the voice is not needed any more
    rest = Run(folder, going_on(TINY), lambda line: None)
    rest.run(["synthesis", "dvae", "vocos", "encode", "gpt", "export"])
    learnt = changed(start, run.checkpoint, "DVAE")
    assert "out_conv.weight" in learnt
    fixed = ("downsample_conv.", "encoder.", "coef", "preprocessor_mel.")
    assert not [name for name in learnt if name.startswith(fixed) or "project_in" in name]
    assert not torch.equal(token_model(folder)["emb_text.weight"], new)
    facts = build_runs.read_json(run.checkpoint / "provenance.json")
    assert facts["steps"] == {"dvae": 3, "vocos": 1, "gpt": 3}
    assert facts["start"]["steps"] == {"dvae": 3, "vocos": 4, "gpt": 9}
    page = (run.checkpoint / "README.md").read_text(encoding="utf-8")
    assert f"which was trained on {facts['start']['hours']} hours, from random weights" in page
    with pytest.raises(WrongFolder, match="made with other settings, adversarial_from: use"):
        Run(folder, TINY).run(["report"])
    another = shutil.copytree(run.checkpoint, tmp_path / "another")
    with pytest.raises(WrongFolder, match="started from another voice than"):
        Run(folder, going_on(TINY), start=another).run(["report"])
    (folder / "vocos" / STATE_FILE).unlink()
    with pytest.raises(WrongFolder, match="vocos has lost what it started from"):
        rest.run(["vocos"])


def changed(before: Path, after: Path, part: str) -> set[str]:
    """Return the names of the tensors of one file that differ between two checkpoints."""
    old, new = (load_file(root / layout.TENSOR_FILES[part]) for root in (before, after))
    return {name for name, tensor in old.items() if not torch.equal(tensor, new[name])}


def token_model(work: Path) -> dict[str, torch.Tensor]:
    """Return the embeddings of the token model that is in training."""
    state = torch.load(work / "gpt" / STATE_FILE)["modules"]["model"]
    return {
        name.removeprefix("embed."): tensor.clone()
        for name, tensor in state.items()
        if name.startswith("embed.")
    }


@needs_teachers
def test_a_run_cannot_start_from_any_checkpoint(work: Path, tmp_path: Path) -> None:
    for number, (change, reason) in enumerate((
        ({"sizes": FULL.sizes}, "its token model has other sizes"),
        ({"seed": 9}, "seed is 8, the settings say 9"),
    )):  # fmt: skip
        settings = dataclasses.replace(going_on(TINY), **change)
        with pytest.raises(StartError, match=reason):
            Run(tmp_path / str(number), settings, start=work / "checkpoint").run(["corpus"])
        assert not (tmp_path / str(number)).exists()
    other = tmp_path / "other"
    shutil.copytree(work / "checkpoint", other)
    run = Run(tmp_path / "run", going_on(TINY), start=other)
    for content in ("{}", '{"seed": 8}', "[]", "{"):
        (other / "provenance.json").write_text(content, encoding="utf-8")
        with pytest.raises(StartError, match="is no provenance of train_voice: "):
            run.run(["corpus"])
    (other / "provenance.json").unlink()
    with pytest.raises(StartError, match="was not made by train_voice"):
        run.run(["corpus"])
    shutil.copy(work / "checkpoint" / "provenance.json", other)
    (other / layout.TENSOR_FILES["gpt"]).unlink()
    with pytest.raises(CheckpointError):
        run.run(["corpus"])
    (other / layout.TOKENIZER_FILE).write_text("{", encoding="utf-8")
    with pytest.raises(CheckpointError, match="tokenizer.json: "):
        run.run(["corpus"])
    with pytest.raises(StartError, match="there is no folder"):
        Run(tmp_path / "run", going_on(TINY), start=tmp_path / "none").run(["corpus"])
    with pytest.raises(StartError, match="which the run writes to: use another folder"):
        Run(work, going_on(TINY), start=work / "checkpoint").run(["corpus"])


@needs_teachers
def test_a_damaged_folder_is_told_in_a_sentence(work: Path, tmp_path: Path) -> None:
    folder = tmp_path / "voice"
    run = Run(folder, TINY, lambda line: None)
    for stage, reason in (
        ("synthesis", "has no sentences.jsonl: run corpus first"),
        ("dvae", "has no utterances.jsonl: run synthesis first"),
    ):
        with pytest.raises(WrongFolder, match=reason):
            run.run([stage])
    with pytest.raises(StateError, match="is missing: run dvae first"):
        run.run(["export"])
    shutil.rmtree(folder)
    shutil.copytree(work, folder)
    state = folder / "dvae" / STATE_FILE
    for damaged in (state.read_bytes()[:-1000], state.read_bytes()[:1000], b"", b"[]"):
        state.write_bytes(damaged)
        with pytest.raises(StateError, match="dvae/state.pt is damaged: "):
            run.run(["encode"])
    (folder / "recipe.json").write_text("", encoding="utf-8")
    with pytest.raises(WrongFolder, match="recipe.json is damaged"):
        run.run(["report"])


@needs_teachers
@pytest.mark.parametrize(("stage", "folder"), [("synthesis", "speech"), ("encode", "codes")])
def test_two_processes_never_write_one_result(work: Path, stage: str, folder: str) -> None:
    with alone_in(work / folder), pytest.raises(Busy, match="another process works here"):
        Run(work, TINY, lambda line: None).run([stage])


def test_other_templates_need_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim(tmp_path / "new", TINY)
    claim(tmp_path / "new", dataclasses.replace(TINY, gpt=Schedule(99, 1e-3)))
    more = dataclasses.replace(ENGLISH, templates=(*ENGLISH.templates, "good night {name}"))
    monkeypatch.setitem(GRAMMARS, "en", more)
    with pytest.raises(WrongFolder, match="made with other templates"):
        claim(tmp_path / "new", TINY)


@needs_teachers
@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_the_build_takes_the_checkpoint(work: Path, tmp_path: Path, precision: str) -> None:
    assert build_runs.run(tmp_path, work / "checkpoint", "--precision", precision) == 0
    weights = tmp_path / "chattts" / "1" / "weights"
    voices = sorted(path.stem for path in (weights / "voices").glob("*.json"))
    assert voices == ["en", "en_male", "zh"]
    facts = build_runs.read_json(weights / "checkpoint.json")
    assert not facts["untrained"]
    assert facts["segment_seconds"] == 0


@needs_teachers
def test_the_provenance_names_what_made_the_voice(work: Path) -> None:
    facts = build_runs.read_json(work / "checkpoint" / "provenance.json")
    assert facts["seed"] == TINY.seed
    assert facts["steps"] == {"dvae": 3, "vocos": 4, "gpt": 9}
    assert facts["corpus"]["sentences"] == TINY.corpus.sentences
    assert facts["corpus"]["sha256"] == sha256(work / "sentences.jsonl")
    assert {"flite", "libflite1", "espeak-ng", "libespeak-ng1"} <= facts["teachers"].keys()
    assert len(facts["commit"]) == 40 or facts["commit"] == "unknown"
    assert isinstance(facts["changed_since_commit"], bool)


@needs_teachers
def test_the_figures_and_licenses_lie_beside_the_weights(work: Path) -> None:
    evaluation = build_runs.read_json(work / "evaluation.json")
    figures = build_runs.read_json(work / "checkpoint" / "provenance.json")["figures"]
    assert figures["en"]["word_accuracy"] == evaluation["en"]["word_accuracy"]
    assert figures["zh"]["duration_ratio"] == evaluation["zh"]["duration_ratio"]
    assert "errors" not in figures["en"]
    page = (work / "checkpoint" / "README.md").read_text(encoding="utf-8")
    assert f"{evaluation['en']['words']} words in 3 English held-out sentences" in page
    for name in (
        "from random weights",
        "Apache-2.0",
        "flite",
        "espeak-ng",
        "pypinyin",
        "CMU Pronouncing Dictionary",
    ):
        assert name in page
    notice = (work / "checkpoint" / "evaluation" / "LICENSE.txt").read_text(encoding="utf-8")
    assert "Carnegie Mellon University" in notice


@needs_teachers
def test_the_evaluation_prints_one_line_of_json(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert evaluate_voice.main([str(work / "checkpoint"), "--sentences", "2"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    result: dict[str, Any] = json.loads(line)
    assert result["en"]["sentences"] == result["zh"]["sentences"] == 2
    assert result["en"]["teacher_accuracy"] >= 0.5
    assert 0 <= result["zh"]["nearest_teacher"] <= 1
    assert result["voices"].keys() == {"en", "en_male"}


@needs_teachers
def test_a_voice_that_is_read_and_written_again_stays_the_same(work: Path, tmp_path: Path) -> None:
    start = work / "checkpoint"
    write_weights(tmp_path, read_voice(start))
    for file in layout.TENSOR_FILES.values():
        assert (tmp_path / file).read_bytes() == (start / file).read_bytes()


def test_the_command_runs_the_stages_it_is_given(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "build/train_voice/__main__.py"), "--work", str(tmp_path)]
    done = subprocess.run(
        [*command, "--quick", "--stage", "corpus"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"quick training in {tmp_path}: a few minutes\n== corpus\n")
    assert (tmp_path / "checkpoint/asset/tokenizer/tokenizer.json").exists()
    done = subprocess.run(
        [*command, "--stage", "corpus", "dance"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "no stage dance; there are: corpus, synthesis" in done.stderr


@pytest.mark.parametrize("settings", [FULL, QUICK], ids=lambda settings: str(settings.name))
def test_a_voice_is_small_enough_to_ship(settings: Settings) -> None:
    sizes = settings.sizes
    parts = (
        layout.gpt_tensors(sizes.gpt(1000)),
        layout.embed_tensors(sizes.gpt(1000)),
        layout.decoder_tensors(sizes.decoder, sizes.dvae.num_mels),
        layout.dvae_tensors(sizes.dvae),
        layout.vocos_tensors(sizes.vocos),
    )
    count = sum(torch.Size(shape).numel() for part in parts for shape in part.values())
    assert 2 * count < 25e6
