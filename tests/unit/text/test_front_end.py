"""The whole front end: what the caller is told, and when the dictionaries are loaded."""

from __future__ import annotations

import subprocess
import sys

import pytest
import text_vocabulary
from chattts_text import FrontEnd, Switches
from text_vocabulary import LIMITS, StandInVocabulary, stand_in_front_end

PACKAGE_FOLDER = text_vocabulary.ROOT / "model_repository" / "chattts" / "1"


def test_warnings_point_into_the_text_of_the_caller() -> None:
    text = "价格 5 元 🎉 こんにちは，踽踽独行"
    done = stand_in_front_end().prepare(text, Switches())
    assert all(text[one["start"] : one["end"]] == one["text"] for one in done.warnings)
    found = {one["code"]: (one["text"], one["spoken"]) for one in done.warnings}
    assert found["dropped_script"] == ("こんにちは", "")
    assert found["homophone"] == ("踽", "举")
    assert found["dropped_symbol"] == ("🎉", "")


@pytest.mark.parametrize("switches", [Switches(), Switches(stages={"clean": False})])
def test_a_control_character_inside_a_word_is_in_the_warnings(switches: Switches) -> None:
    done = stand_in_front_end().prepare("a\0b你\a好", switches)
    places = [(one["start"], one["end"], one["text"]) for one in done.warnings]
    assert places == [(1, 2, "\0"), (4, 5, "\a")]


def test_invisible_characters_and_line_breaks_are_no_warning() -> None:
    text = "\ufeffa\u00adb\u200bc\td\x0be\x85f\r\ng\n你\ufe0f"
    assert not stand_in_front_end().prepare(text, Switches()).warnings


def test_a_dry_run_shows_segments_warnings_and_alignment() -> None:
    shown = stand_in_front_end().prepare("第3章。Hello world.", Switches()).as_json()
    assert [one["text"] for one in shown["segments"]] == ["第三章。", "Hello world."]
    assert shown["warnings"] == []
    assert "".join(one["text"] for one in shown["alignment"]) == "第3章。Hello world."
    assert shown["estimated_s"] == pytest.approx(3 * 0.22 + 3 * 0.19 + 2 * 0.4)


def test_an_unsupported_script_is_refused_where_the_caller_wants_that() -> None:
    with pytest.raises(ValueError, match="^text: 'Привет' at character 7 is Cyrillic; allowed: "):
        stand_in_front_end().prepare("2026年！ Привет", Switches(on_unsupported="error"))


def test_control_tokens_show_in_the_spoken_text_of_the_alignment() -> None:
    shown = stand_in_front_end().prepare("好[laugh]的", Switches()).as_json()
    spoken = "".join(one["spoken"] for one in shown["alignment"])
    assert spoken == "好[laugh]的"


def test_without_splitting_the_text_is_one_segment() -> None:
    done = stand_in_front_end().prepare("一。二。" * 200, Switches(), is_split=False)
    assert len(done.segments) == 1


def test_the_lexicon_of_a_request_comes_before_that_of_the_voice() -> None:
    front_end = FrontEnd(StandInVocabulary(), {"SQL": "sequel", "GUI": "gooey"}, LIMITS)
    switches = Switches(lexicon={"SQL": "S Q L"})
    assert front_end.prepare("SQL GUI", switches).spoken == "S Q L gooey"


@pytest.mark.parametrize(
    ("stage", "text", "spoken"),
    [
        ("normalize", "5 元", "5 元"),
        ("script", "頭髮", "頭髮"),
        ("lexicon", "SQL", "S Q L"),
        ("clean", "&amp;", "and amp;"),
    ],
)
def test_a_stage_can_be_left_out(stage: str, text: str, spoken: str) -> None:
    switches = Switches(stages={stage: False}, lexicon={"SQL": "sequel"})
    assert stand_in_front_end().prepare(text, switches).spoken == spoken


def test_plain_text_loads_no_dictionary() -> None:
    script = (
        "import sys\n"
        "from chattts_text import FrontEnd, SegmentLimits, Switches\n"
        "class All:\n"
        "    def has(self, text): return True\n"
        "front_end = FrontEnd(All(), {}, SegmentLimits(100, 20.0))\n"
        "front_end.prepare('你好，今天5月3日。 Hello 3 times!', Switches(input_format='auto'))\n"
        "print({'pypinyin', 'opencc', 'markdown_it', 'anyascii', 'numpy'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=PACKAGE_FOLDER,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize(
    ("missing", "spoken"),
    [
        ("", "真的吗？好！一，二"),
        ("？", "真的吗? 好！一，二"),
        ("？?！!", "真的吗。好。一，二"),
        ("？?！!。.", "真的吗，好，一，二"),
        ("，,、", "真的吗？好！一。二"),
        ("？?！!。.，,", "真的吗好一二"),
    ],
)
def test_a_mark_that_the_vocabulary_lacks_becomes_one_that_it_has(
    missing: str, spoken: str
) -> None:
    class Lacking(StandInVocabulary):
        def has(self, text: str) -> bool:
            return super().has(text) and not set(missing) & set(text)

    front_end = FrontEnd(Lacking(), {}, LIMITS)
    assert front_end.prepare("真的吗？好！一，二", Switches()).spoken == spoken
