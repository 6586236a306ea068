"""Names, media types and plain text (design section 6)."""

from __future__ import annotations

import re
import unicodedata

import pytest
from golden_vectors import Vector, assert_says_why, golden, refused
from hypothesis import given
from hypothesis import strategies as st

from bnw.wire.errors import InvalidError
from bnw.wire.limits import MAX_MEDIA_TYPE, MAX_NOTE_LENGTH
from bnw.wire.names import MAX_NAME, check_name, is_media_type, is_name, is_plain_text
from bnw.wire.printable import printable

ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789._-"


@golden("names.json", "names")
def test_a_name_is_accepted(vector: Vector) -> None:
    assert is_name(vector["text"])
    assert check_name(vector["text"]) == vector["text"]


@golden("names.json", "refused_names")
def test_what_is_no_name_is_refused(vector: Vector) -> None:
    assert not is_name(vector["text"])
    with refused(vector):
        check_name(vector["text"])


@golden("names.json", "media_types")
def test_a_media_type_is_accepted(vector: Vector) -> None:
    assert is_media_type(vector["text"])


@golden("names.json", "refused_media_types")
def test_what_is_no_media_type_is_refused(vector: Vector) -> None:
    assert not is_media_type(vector["text"])
    assert vector["code"] == "field"
    assert_says_why(vector)


@golden("names.json", "texts")
def test_plain_text_is_accepted(vector: Vector) -> None:
    assert is_plain_text(vector["text"])
    assert 1 <= len(vector["text"].encode()) <= MAX_NOTE_LENGTH


@golden("names.json", "refused_texts")
def test_what_is_not_plain_or_has_another_size_is_no_note(vector: Vector) -> None:
    assert not (is_plain_text(vector["text"]) and 1 <= len(vector["text"].encode()) <= MAX_NOTE_LENGTH)
    assert vector["code"] == "field"
    assert_says_why(vector)


def is_name_by_the_design(text: str) -> bool:
    """The rule of design section 6, word by word."""
    return (
        1 <= len(text) <= 64
        and set(text) <= set(ALPHABET + "/")
        and text[0] in "abcdefghijklmnopqrstuvwxyz0123456789"
        and all(segment for segment in text.split("/"))
    )


@given(st.text(ALPHABET + "/", max_size=70) | st.text(max_size=10))
def test_a_name_is_what_the_design_says(text: str) -> None:
    assert is_name(text) == is_name_by_the_design(text)


RESTRICTED = st.from_regex(re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,62}", re.ASCII), fullmatch=True)


@given(RESTRICTED, RESTRICTED)
def test_two_restricted_names_of_rfc_6838_are_a_media_type(first: str, second: str) -> None:
    assert is_media_type(f"{first}/{second}")
    assert not is_media_type(f"{first}/{second};q=1")


def test_the_longest_ones_have_these_sizes() -> None:
    assert (MAX_NAME, MAX_MEDIA_TYPE) == (64, 127)


def test_no_control_and_no_direction_control_of_unicode_is_plain() -> None:
    bidirectional = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    for code in range(0x110000):
        mark = chr(code)
        if unicodedata.category(mark) in {"Cc", "Zl", "Zp"} or unicodedata.bidirectional(mark) in bidirectional:
            assert not is_plain_text(mark), hex(code)


def test_a_refusal_of_a_long_name_is_short_and_says_what_it_is_for() -> None:
    with pytest.raises(InvalidError, match="network name") as caught:
        check_name("X" * 100_000, "network name")
    assert len(str(caught.value)) < 400


@given(st.text(max_size=50))
def test_what_is_made_printable_cannot_command_a_terminal(text: str) -> None:
    shown = printable(text)
    assert shown.isprintable()
    assert shown == text or not text.isprintable()
