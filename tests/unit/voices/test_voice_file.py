"""What a voice's file may hold."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from chattts_voices import VoiceFile, digest, parse_voice
from chattts_voices.strings import decode_audio_prompt, decode_speaker
from hypothesis import given, settings
from hypothesis import strategies as st
from voice_samples import HIDDEN, PROMPT, PROVENANCE, SPEAKER, TRANSCRIPT, prompt_voice, voice


def parse(fields: object, name: str = "anna") -> VoiceFile:
    return parse_voice(json.dumps(fields).encode(), name, HIDDEN)


def test_a_speaker_is_read_and_told_of_without_its_data() -> None:
    found = parse(voice("anna", aliases=["alloy", "Browser Voice 2"], gender="female"))
    assert found.voice.name == "anna"
    assert np.array_equal(found.voice.speaker_embedding, decode_speaker(SPEAKER))
    assert found.voice.audio_prompt_codes is None
    assert found.facts == {
        "name": "anna",
        "kind": "speaker",
        "language": "en",
        "languages": ["en"],
        "gender": "female",
        "styles": [],
        "description": "calm",
        "aliases": ["alloy", "Browser Voice 2"],
        "auditioned": False,
        "license": "CC0-1.0",
        "provenance": PROVENANCE,
        "sha256": digest(decode_speaker(SPEAKER)),
    }


def test_a_voice_of_two_languages_states_no_single_one() -> None:
    facts = parse(voice("anna", languages=["zh", "en"])).facts
    assert (facts["language"], facts["languages"]) == ("", ["zh", "en"])


def test_an_audio_prompt_is_read_with_its_transcript() -> None:
    found = parse(prompt_voice("anna")).voice
    assert found.speaker_embedding is None
    assert found.transcript == TRANSCRIPT
    assert found.audio_prompt_codes is not None
    assert found.audio_prompt_codes.dtype == np.int32
    assert np.array_equal(found.audio_prompt_codes, decode_audio_prompt(PROMPT))


def test_an_audio_prompt_may_have_a_speaker_too() -> None:
    speaker, codes = decode_speaker(SPEAKER), decode_audio_prompt(PROMPT)
    found = parse(prompt_voice("anna", speaker=SPEAKER, sha256=digest(speaker, codes))).voice
    assert np.array_equal(found.speaker_embedding, speaker)
    assert np.array_equal(found.audio_prompt_codes, codes)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ([], "not a JSON object"),
        (voice("anna", format=2), "format: 2; allowed: 1"),
        (voice("anna", format=None), "format: is missing; allowed: 1"),
        (voice("bo"), "name: 'bo'; allowed: the file's name"),
        (voice("anna", kind="sample"), "kind: 'sample'; allowed: speaker, audio_prompt"),
        (voice("anna", languages=["fr"]), r"languages: \['fr'\]; allowed: a list of zh and en"),
        (voice("anna", languages="en"), "languages: 'en'; allowed: a list"),
        (voice("anna", languages=["en", "en"]), ".+none twice"),
        (voice("anna", gender="soprano"), "gender: .+; allowed: female, male, neutral, unknown"),
        (voice("anna", styles=[""]), "styles: "),
        (voice("anna", description="two\nlines"), "description: "),
        (voice("anna", aliases=["default"]), "aliases: .+none of custom, default"),
        (voice("anna", aliases=[" x"]), "aliases: "),
        (voice("anna", aliases=["\ud800"]), "aliases: "),
        (voice("anna", description="\ud800"), "description: "),
        (voice("anna", auditioned="yes"), "auditioned: 'yes'; allowed: true or false"),
        (voice("anna", license=""), "license: ''"),
        (voice("anna", provenance={"method": "x"}), "provenance: has no 'tool'; allowed: at least"),
        (voice("anna", provenance={**PROVENANCE, "date": "today"}), ".+allowed: YYYY-MM-DD"),
        (voice("anna", sha256="0" * 64), "sha256: .+; allowed: that of the values, "),
        (voice("anna", sha256="x"), "sha256: 'x'; allowed: 64 hexadecimal digits"),
        (voice("anna", speaker=None), "speaker: is missing"),
        (voice("anna", speaker=PROMPT), "speaker: .+; allowed: a speaker string of 64"),
        (voice("anna", speaker=7), "speaker: 7; allowed: a string"),
        (voice("anna", audio_prompt=PROMPT), "audio_prompt: unknown or not of this kind"),
        (voice("anna", colour="red"), "colour: unknown"),
        (prompt_voice("anna", audio_prompt=SPEAKER), "audio_prompt: .+; allowed: an audio-prompt"),
        (prompt_voice("anna", transcript=""), "transcript: ''; allowed: what the recording says"),
        (prompt_voice("anna", transcript="hi [Ptts]"), "transcript: .+without square brackets"),
        (
            prompt_voice(
                "anna", provenance={k: v for k, v in PROVENANCE.items() if k != "consent"}
            ),
            "provenance: has no 'consent'",
        ),
    ],
)
def test_a_wrong_field_is_named_with_what_is_allowed(fields: Any, message: str) -> None:
    with pytest.raises(ValueError, match=rf"^{message}"):
        parse(fields)


@pytest.mark.parametrize(
    "name", ["", "-x", "a b", "a/b", "..", "x" * 49, "custom", "default", "@@@"]
)
def test_a_name_is_a_plain_word(name: str) -> None:
    with pytest.raises(ValueError, match=r"^name: .+; allowed: 1 \.\.\. 48 letters"):
        parse(voice(name), name)


@pytest.mark.parametrize("name", ["小美", "en-1", "Anna_2.b"])
def test_names_of_any_script_are_allowed(name: str) -> None:
    assert parse(voice(name), name).voice.name == name


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "not UTF-8 JSON"), (b"\xff{", "not UTF-8 JSON"), (b"[" * 100_000, "not UTF-8 JSON")],
)
def test_what_is_no_json_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_voice(content, "anna", HIDDEN)


TEXTS = st.text(st.characters())  # with lone surrogates, which JSON can hold
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda values: st.lists(values) | st.dictionaries(TEXTS, values),
    max_leaves=5,
)


@settings(deadline=None)
@given(st.sampled_from(sorted(prompt_voice("anna").keys() | {"speaker", "x", "\ud800"})), JSON)
def test_any_value_is_read_or_refused_in_words_that_can_be_sent(field: str, value: Any) -> None:
    for fields in (voice("anna"), prompt_voice("anna")):
        try:
            facts = parse({**fields, field: value}).facts
        except ValueError as error:
            str(error).encode()
        else:
            json.dumps(facts, ensure_ascii=False).encode()


def test_a_huge_file_is_refused() -> None:
    with pytest.raises(ValueError, match="more than 1048576 bytes"):
        parse_voice(b" " * ((1 << 20) + 1), "anna", HIDDEN)
