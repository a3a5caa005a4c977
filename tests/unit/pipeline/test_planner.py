"""Planner: who speaks, in which segments, with which warnings."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from chattts_pipeline.planner import Planner, read_lexicon
from chattts_pipeline.request import SpeechRequest
from chattts_pipeline.settings import Checkpoint, Settings
from chattts_pipeline.vocabulary import Vocabulary
from chattts_voices import VoiceRegistry
from conftest import DEMO_CHECKPOINT

SETTINGS = Settings(5000, 64, 2, 400, 12, 8)
CHECKPOINT = Checkpoint("a", False, "fp32", 24000, 768, 512, 52, 10, (), 20.0, "")
TEXT = "hello anna. " * 12


def planner(
    tmp_path: Path, settings: Settings = SETTINGS, checkpoint: Checkpoint = CHECKPOINT
) -> Planner:
    tokenizer = DEMO_CHECKPOINT / "asset" / "tokenizer" / "tokenizer.json"
    return Planner(
        settings,
        checkpoint,
        VoiceRegistry(tmp_path, 768, "", print),
        Vocabulary(tokenizer, DEMO_CHECKPOINT / "domain_words.txt"),
        {"AN": "anna"},
    )


def test_the_first_sentence_stands_alone_and_the_others_are_joined(tmp_path: Path) -> None:
    plan = planner(tmp_path).plan(SpeechRequest(TEXT), "r")
    assert [segment.text.count("anna") for segment in plan.segments] == [1, 11]


@pytest.mark.parametrize("wanted_s", [0, None])
def test_operator_and_checkpoint_decide_whether_sentences_are_joined(
    tmp_path: Path, wanted_s: int | None
) -> None:
    learnt_s = 20.0 if wanted_s == 0 else 0.0
    plan = planner(
        tmp_path,
        replace(SETTINGS, segment_seconds=wanted_s),
        replace(CHECKPOINT, segment_seconds=learnt_s),
    ).plan(SpeechRequest(TEXT), "r")
    assert len(plan.segments) == 12


def test_a_voice_that_learnt_single_sentences_gets_no_long_ones(tmp_path: Path) -> None:
    request = SpeechRequest("hello anna " * 30)
    assert len(planner(tmp_path).plan(request, "r").segments) == 1
    single = replace(CHECKPOINT, segment_seconds=0.0)
    segments = planner(tmp_path, checkpoint=single).plan(request, "r").segments
    assert max(segment.estimated_s for segment in segments) <= 8.0


def test_what_the_voice_does_not_know_is_told_of_what_is_said(tmp_path: Path) -> None:
    plan = planner(tmp_path).plan(SpeechRequest("hello AN ☃ quantum 7"), "r")
    assert [segment.text for segment in plan.segments] == ["hello anna quantum seven"]
    assert [warning["code"] for warning in plan.warnings] == [
        "dropped_symbol",
        "outside_vocabulary",
    ]
    assert ": quantum;" in plan.warnings[1]["message"]
    told = planner(tmp_path).dry_run(SpeechRequest("hello AN ☃ quantum 7"))
    assert told["warnings"] == list(plan.warnings)


def test_a_text_without_words_is_a_warning_in_a_stream_alone(tmp_path: Path) -> None:
    plan = planner(tmp_path).plan(SpeechRequest("...!"), "r")
    assert plan.segments == ()
    assert plan.warnings[-1]["code"] == "no_speakable_text"
    with pytest.raises(ValueError, match="^text: nothing in it can be spoken"):
        planner(tmp_path).plan(SpeechRequest("...!", stream=False), "r")


def test_a_seed_is_drawn_once_per_request(tmp_path: Path) -> None:
    seeds = {planner(tmp_path).plan(SpeechRequest("hello"), "r").seed for _ in range(5)}
    assert len(seeds) == 5
    assert planner(tmp_path).plan(SpeechRequest("hello", seed=3), "r").seed == 3


def test_the_operators_lexicon_is_read_and_checked(tmp_path: Path) -> None:
    path = tmp_path / "lexicon.json"
    assert read_lexicon(path) == {}
    path.write_text(json.dumps({"SQL": "sequel"}))
    assert read_lexicon(path) == {"SQL": "sequel"}
    for broken in ("[1]", '{"a": 1}', "{"):
        path.write_text(broken)
        with pytest.raises(ValueError, match=r"lexicon\.json"):
            read_lexicon(path)
