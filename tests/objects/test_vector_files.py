"""No dead data: every section of every file in `proto/vectors/` has a test that uses every field of each vector."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from golden_vectors import VECTORS, Vector, golden

TESTS = Path(__file__).parents[1]
FILES = sorted(path.name for path in VECTORS.iterdir())
USE = re.compile(r'^@golden\("([a-z-]+\.json)", "([a-z_]+)"\)$', re.MULTILINE)


def sections(file: str) -> dict[str, list[dict[str, Any]]]:
    content = json.loads((VECTORS / file).read_text())
    return {name: value for name, value in content.items() if name != "about"}


def used() -> set[tuple[str, str]]:
    folders = ("wire", "identity", "objects")
    sources = [path for folder in folders for path in (TESTS / folder).glob("test_*.py")]
    return {use for path in sources for use in USE.findall(path.read_text())}


def test_every_section_has_a_test_and_every_test_its_section() -> None:
    assert used() == {(file, section) for file in FILES for section in sections(file)}


@pytest.mark.parametrize("file", FILES)
def test_a_file_says_what_it_is_about(file: str) -> None:
    about = json.loads((VECTORS / file).read_text())["about"]
    assert about.endswith(".")
    unnamed = [name for name in sections(file) if f"`{name}`" not in about]
    assert [name for name in unnamed if name != "accepted" and not name.startswith("refused")] == []


@pytest.mark.parametrize("file", FILES)
def test_no_two_vectors_of_a_section_are_the_same_or_have_one_name(file: str) -> None:
    for section, vectors in sections(file).items():
        assert vectors, section
        names = Counter(vector["name"] for vector in vectors if "name" in vector)
        assert [name for name, count in names.items() if count > 1] == []
        without_labels = [
            json.dumps(
                {field: value for field, value in vector.items() if field not in {"name", "reason"}}, sort_keys=True
            )
            for vector in vectors
        ]
        assert len(set(without_labels)) == len(without_labels), section


@pytest.mark.parametrize("file", FILES)
def test_the_vectors_of_a_section_have_the_same_fields(file: str) -> None:
    for section, vectors in sections(file).items():
        assert len({frozenset(vector) for vector in vectors}) == 1, section


def test_a_field_that_a_test_does_not_look_at_would_be_noticed() -> None:
    vector = Vector({"name": "x", "used": 1, "forgotten": 2})
    assert vector["used"] == 1
    assert vector.unread == {"forgotten"}

    @golden("frames.json", "accepted")
    def careless(vector: Vector) -> None:
        assert vector["hex"] is not None

    with pytest.raises(AssertionError, match="nothing looked at max_size, messages, whole"):
        careless(Vector({"name": "x", "hex": "", "messages": [], "max_size": 1, "whole": True}))
