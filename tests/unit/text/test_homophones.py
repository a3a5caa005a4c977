"""Readings and the common characters that have them."""

from __future__ import annotations

import pytest
from chattts_text.homophones import homophone, readings, syllable, with_reading
from text_vocabulary import StandInVocabulary


@pytest.mark.parametrize(
    ("written", "reading"),
    [
        ("hang2", "hang2"),
        ("háng", "hang2"),
        (" Háng ", "hang2"),
        ("lv4", "lü4"),
        ("lu:4", "lü4"),
        ("lǜ", "lü4"),
        ("lü4", "lü4"),
        ("de", "de5"),
        ("zi0", "zi5"),
        ("hang22", None),
        ("行", None),
        ("", None),
        ("4", None),
    ],
)
def test_pinyin_is_read_in_its_usual_notations(written: str, reading: str | None) -> None:
    assert syllable(written) == reading


def test_the_usual_reading_comes_first() -> None:
    assert readings("行")[0] == "xing2"
    assert "hang2" in readings("行")
    assert readings("x") == []


@pytest.mark.parametrize("character", "踽犇讣镊铱谰")
def test_a_homophone_has_the_same_sound_and_one_reading(character: str) -> None:
    found = homophone(character, StandInVocabulary())
    assert found is not None
    assert readings(found)[0] == readings(character)[0]
    assert StandInVocabulary().has(found)


def test_only_characters_of_the_vocabulary_are_taken() -> None:
    class Nothing:
        def has(self, text: str) -> bool:
            return False

    assert with_reading("hang2", Nothing()) is None
    assert homophone("犇", Nothing()) is None


def test_signboard_characters_of_extension_blocks_have_their_common_form() -> None:
    assert homophone("𠮷", StandInVocabulary()) == "吉"


def test_a_rare_character_serves_only_where_it_may() -> None:
    assert with_reading("liao3", StandInVocabulary()) is None
    found = with_reading("liao3", StandInVocabulary(), with_rare=True)
    assert found is not None
    assert readings(found)[0] == "liao3"
