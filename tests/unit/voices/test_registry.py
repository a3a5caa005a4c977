"""The folder of voices: who is found, and what happens when files change."""

from __future__ import annotations

import json
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chattts_voices import Voice, VoiceRegistry, digest, registry
from chattts_voices.strings import decode_speaker, encode_speaker
from voice_samples import HIDDEN, PROMPT, SPEAKER, prompt_voice, voice, write

OTHER = encode_speaker(np.ones(HIDDEN, np.float16))
NUM_CALLERS = 50


def names(voices: VoiceRegistry) -> list[str]:
    return [entry["name"] for entry in voices.listing()["voices"]]


def errors(voices: VoiceRegistry) -> dict[str, str]:
    return {entry["file"]: entry["message"] for entry in voices.listing()["errors"]}


def other_voice(name: str, **changes: Any) -> dict[str, Any]:
    """A file of other values under a name."""
    return voice(name, speaker=OTHER, sha256=digest(decode_speaker(OTHER)), **changes)


def test_voices_are_found_by_name_alias_string_or_default(tmp_path: Path) -> None:
    write(tmp_path, voice("anna", aliases=["alloy", "Browser Voice 2"]))
    voices = VoiceRegistry(tmp_path, HIDDEN, "anna")
    for name in ("anna", "alloy", "Browser Voice 2", "", "default"):
        assert voices.find(name).name == "anna"
    custom = voices.find(SPEAKER)
    assert custom.name == "custom"
    assert np.array_equal(custom.speaker_embedding, decode_speaker(SPEAKER))


def test_an_audio_prompt_voice_brings_codes_and_transcript(tmp_path: Path) -> None:
    write(tmp_path, prompt_voice("bo"))
    found = VoiceRegistry(tmp_path, HIDDEN, "").find("bo")
    assert found.audio_prompt_codes is not None
    assert found.transcript


def test_without_a_default_an_empty_voice_has_no_speaker(tmp_path: Path) -> None:
    voices = VoiceRegistry(tmp_path / "none", HIDDEN, "")
    found = voices.find("")
    assert (found.name, found.speaker_embedding) == ("", None)
    with pytest.raises(ValueError, match="^voice: 'default' is unknown"):
        voices.find("default")


def test_the_listing_tells_everything_but_the_data_in_order(tmp_path: Path) -> None:
    for fields in (voice("zoe"), voice("anna"), prompt_voice("bo")):
        write(tmp_path, fields)
    listing = VoiceRegistry(tmp_path, HIDDEN, "").listing()
    assert [entry["name"] for entry in listing["voices"]] == ["anna", "bo", "zoe"]
    assert not {"speaker", "audio_prompt", "transcript"} & listing["voices"][1].keys()
    assert listing["errors"] == []


@pytest.mark.parametrize(
    "name", ["alloy", "小美", "Anna", "x" * 500, "@@@", "anna.json", "../anna"]
)
def test_an_unknown_voice_says_what_is_allowed_and_how_to_list_them(
    tmp_path: Path, name: str
) -> None:
    write(tmp_path, voice("anna"))
    voices = VoiceRegistry(tmp_path, HIDDEN, "")
    with pytest.raises(ValueError, match=r'^voice: .+unknown; allowed: .+\{"list_voices": true\}'):
        voices.find(name)


@pytest.mark.parametrize(
    ("string", "message"),
    [
        (PROMPT, "voice: an audio-prompt string; allowed: a speaker string"),
        (SPEAKER[:-8], "voice: broken .+; allowed: a speaker string of 64"),
        (SPEAKER[:30] + "A" + SPEAKER[31:], r"voice: broken characters: U\+0041 at 30; allowed: "),
        (
            encode_speaker(np.linspace(-4, 4, 700).astype(np.float16)),
            "voice: 1400 bytes, which are 700 values; allowed",
        ),
    ],
)
def test_a_wrong_string_is_never_another_voice(tmp_path: Path, string: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        VoiceRegistry(tmp_path, HIDDEN, "").find(string)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ([voice("anna", kind="x")], "anna.json: kind: 'x'; allowed"),
        ([voice("anna", speaker=SPEAKER[:-8])], "anna.json: speaker: broken"),
        ([voice("anna", aliases=["x"]), voice("bo", aliases=["x"])], "bo.json: aliases: 'x'"),
        ([voice("anna", aliases=["bo"]), voice("bo")], "anna.json: aliases: 'bo' already"),
    ],
)
def test_a_file_that_is_broken_from_the_start_is_listed_and_logged(
    tmp_path: Path, fields: list[dict[str, Any]], message: str
) -> None:
    for entry in [*fields, voice("zoe")]:
        write(tmp_path, entry)
    logged: list[str] = []
    voices = VoiceRegistry(tmp_path, HIDDEN, "zoe", logged.append)
    assert voices.find("").name == "zoe"
    (error,) = voices.listing()["errors"]
    assert f"{error['file']}: {error['message']}".startswith(message)
    assert [message in line for line in logged] == [True]


@pytest.mark.parametrize("asked", ["", "default"])
def test_a_default_that_is_not_there_or_broken_is_an_error_and_no_other_voice(
    tmp_path: Path, asked: str
) -> None:
    write(tmp_path, voice("anna"))
    logged: list[str] = []
    voices = VoiceRegistry(tmp_path, HIDDEN, "bo", logged.append)
    assert "the default voice 'bo' is not in" in logged[0]
    with pytest.raises(ValueError, match="^voice: 'bo' is unknown; allowed"):
        voices.find(asked)
    write(tmp_path, voice("bo", kind="x"))
    with pytest.raises(ValueError, match=r"^voice: 'bo' is unknown \(its file is broken: kind"):
        voices.find(asked)
    assert voices.find("anna").name == "anna"


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    for name in (".anna.json", "notes.txt", "anna.json.tmp"):
        (tmp_path / name).write_text("x")
    assert names(VoiceRegistry(tmp_path, HIDDEN, "")) == []


def test_a_file_that_appears_changes_or_vanishes_is_seen_by_the_next_call(tmp_path: Path) -> None:
    voices = VoiceRegistry(tmp_path, HIDDEN, "")
    path = write(tmp_path, voice("anna"))
    first = voices.find("anna")
    write(tmp_path, other_voice("anna"))
    second = voices.find("anna")
    assert np.array_equal(second.speaker_embedding, np.ones(HIDDEN))
    assert np.array_equal(first.speaker_embedding, decode_speaker(SPEAKER))  # running requests
    path.unlink()
    with pytest.raises(ValueError, match="unknown"):
        voices.find("anna")


def test_a_change_without_another_size_or_time_is_seen_if_it_comes_at_once(tmp_path: Path) -> None:
    path = write(tmp_path, voice("anna", description="one"))
    voices = VoiceRegistry(tmp_path, HIDDEN, "")
    before = path.stat()
    write(tmp_path, voice("anna", description="two"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert voices.listing()["voices"][0]["description"] == "two"


def test_a_broken_file_keeps_the_last_good_voice_and_is_listed_and_logged_once(
    tmp_path: Path,
) -> None:
    lines: list[str] = []
    path = write(tmp_path, voice("anna"))
    voices = VoiceRegistry(tmp_path, HIDDEN, "", lines.append)
    good = path.read_text()
    for content in (good[: len(good) // 2], good[: len(good) // 2]):
        path.write_text(content)
        assert voices.find("anna").name == "anna"
        assert list(errors(voices)) == ["anna.json"]
    assert len(lines) == 1
    assert "anna.json: not UTF-8 JSON" in lines[0]
    path.write_text(good)
    assert errors(voices) == {}


def test_a_new_file_that_is_broken_says_so_to_who_asks_for_it(tmp_path: Path) -> None:
    voices = VoiceRegistry(tmp_path, HIDDEN, "")
    write(tmp_path, voice("anna", sha256="0" * 64))
    with pytest.raises(ValueError, match=r"'anna' is unknown \(its file is broken: sha256: "):
        voices.find("anna")


def test_a_default_voice_that_vanishes_is_kept_and_listed(tmp_path: Path) -> None:
    path = write(tmp_path, voice("anna"))
    voices = VoiceRegistry(tmp_path, HIDDEN, "anna")
    path.unlink()
    assert voices.find("").name == voices.find("anna").name == "anna"
    assert "default voice" in errors(voices)["anna.json"]
    write(tmp_path, other_voice("anna"))
    assert np.array_equal(voices.find("").speaker_embedding, np.ones(HIDDEN))
    assert errors(voices) == {}


def test_a_newcomer_takes_no_alias_away(tmp_path: Path) -> None:
    write(tmp_path, voice("bo", aliases=["alloy"]))
    voices = VoiceRegistry(tmp_path, HIDDEN, "")
    write(tmp_path, other_voice("anna", aliases=["alloy"]))
    assert voices.find("alloy").name == "bo"
    assert voices.find("anna").name == "anna"
    assert "'alloy' already names the voice 'bo'" in errors(voices)["anna.json"]


def test_a_file_whose_name_is_no_text_is_an_error_that_can_be_sent(tmp_path: Path) -> None:
    voices = VoiceRegistry(tmp_path, HIDDEN, "")
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.json"))
    path.write_text("{}")
    assert list(errors(voices)) == ["\\udcff.json"]
    json.dumps(voices.listing(), ensure_ascii=False).encode()


def test_a_file_s_name_is_stronger_than_an_alias(tmp_path: Path) -> None:
    write(tmp_path, voice("bo", aliases=["alloy"]))
    voices = VoiceRegistry(tmp_path, HIDDEN, "")
    assert voices.find("alloy").name == "bo"
    write(tmp_path, other_voice("alloy"))
    assert voices.find("alloy").name == "alloy"
    assert "'alloy' already names the voice 'alloy'" in errors(voices)["bo.json"]


def test_a_folder_that_vanishes_or_is_no_folder_changes_no_voice(tmp_path: Path) -> None:
    folder = tmp_path / "voices"
    folder.mkdir()
    write(folder, voice("anna"))
    voices = VoiceRegistry(folder, HIDDEN, "")
    folder.rename(tmp_path / "away")
    assert voices.find("anna").name == "anna"
    assert errors(voices) == {"": "No such file or directory"}
    (tmp_path / "away").rename(folder)
    assert errors(voices) == {}


def test_fifty_first_requests_of_a_new_voice_get_the_same_one_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[str] = []
    parse = registry.parse_voice

    def counted(content: bytes, name: str, hidden_size: int | None) -> Any:
        reads.append(name)
        time.sleep(0.01)
        return parse(content, name, hidden_size)

    monkeypatch.setattr(registry, "parse_voice", counted)
    voices = VoiceRegistry(tmp_path, HIDDEN, "")
    old = write(tmp_path, voice("anna"))
    os.utime(old, (1, 1))
    monkeypatch.setattr(registry, "_SETTLED_NS", 0)
    barrier = threading.Barrier(NUM_CALLERS)

    def ask(_: int) -> Voice:
        barrier.wait()
        return voices.find("anna")

    with ThreadPoolExecutor(NUM_CALLERS) as threads:
        found = list(threads.map(ask, range(NUM_CALLERS)))
    assert len({id(voice) for voice in found}) == 1
    assert reads == ["anna"]


def test_nothing_is_read_again_while_nothing_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, voice("anna"))
    monkeypatch.setattr(registry, "_SETTLED_NS", 0)
    voices = VoiceRegistry(tmp_path, HIDDEN, "")
    monkeypatch.setattr(registry, "parse_voice", None)
    assert voices.find("anna") is voices.find("anna")
