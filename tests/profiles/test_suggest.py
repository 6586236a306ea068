"""Near misses."""

from __future__ import annotations

import pytest

from bnw.profiles.suggest import suggest

KNOWN = ("media_types", "max_bytes", "privacy", "schema", "name", "input")


@pytest.mark.parametrize(
    ("misspelt", "meant"),
    [
        ("mediaTypes", "media_types"), ("MEDIA-TYPES", "media_types"), ("media_type", "media_types"),
        ("maxbytes", "max_bytes"), ("max_bites", "max_bytes"), ("pirvacy", "privacy"), ("privcy", "privacy"),
        ("shcema", "schema"), ("nmae", "name"), ("nam", "name"), ("imput", "input"),
    ],
)  # fmt: skip
def test_a_near_miss_finds_the_name_that_was_meant(misspelt: str, meant: str) -> None:
    assert suggest(misspelt, KNOWN) == meant


@pytest.mark.parametrize("other", ["endpoint", "price", "n", "", "nnnn", "x" * 10_000, "media_types" * 3])
def test_what_is_far_from_all_names_finds_none(other: str) -> None:
    assert suggest(other, KNOWN) is None


def test_the_nearest_of_several_wins_and_the_name_itself_is_no_suggestion() -> None:
    assert suggest("inputs", ("outputs", "inputxx", "input")) == "input"
    assert suggest("input", ("input",)) is None
