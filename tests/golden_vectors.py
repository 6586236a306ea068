"""The golden vectors of `proto/vectors/` for tests, with a watch over what of them is used.

`golden` runs a test once for each vector of a section and fails it if a field of the vector was never looked at. That
every section has such a test is checked in `tests/objects/test_vector_files.py`; together they leave no dead data.
"""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bnw.wire.cbor import Value
from bnw.wire.errors import InvalidError

VECTORS = Path(__file__).parent.parent / "proto/vectors"


class Vector(dict[str, Any]):
    """One vector. Remembers which of its fields were read; `name` only labels it."""

    def __init__(self, fields: dict[str, Any]) -> None:
        super().__init__(fields)
        self.unread = set(fields) - {"name"}

    def __getitem__(self, field: str) -> Any:
        self.unread.discard(field)
        return super().__getitem__(field)

    def bytes_of(self, field: str) -> bytes:
        """A field that holds bytes in hexadecimal."""
        return bytes.fromhex(self[field])


@functools.cache
def vector_file(file: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((VECTORS / file).read_text())
    return content


def vectors(file: str, section: str) -> list[Vector]:
    """The vectors of a section, for tests that look at some of their fields."""
    return [Vector(fields) for fields in vector_file(file)[section]]


def golden(file: str, section: str) -> Callable[[Callable[[Vector], None]], Any]:
    """Run a test on each vector of a section, and demand that it uses every field."""

    def decorate(test: Callable[[Vector], None]) -> Any:
        @functools.wraps(test)
        def run(vector: Vector) -> None:
            test(vector)
            assert not vector.unread, f"nothing looked at {', '.join(sorted(vector.unread))}"

        given = vectors(file, section)
        labels = [f"{number}-{vector.get('name', '')}" for number, vector in enumerate(given)]
        return pytest.mark.parametrize("vector", given, ids=labels)(run)

    return decorate


@contextlib.contextmanager
def refused(vector: Vector) -> Iterator[None]:
    """What is done within must be refused with the vector's code, at its place if it names one."""
    with pytest.raises(InvalidError) as caught:
        yield
    assert caught.value.code == vector["code"], str(caught.value)
    if "place" in vector:
        assert caught.value.place == vector["place"]
    assert_says_why(vector)


def assert_says_why(vector: Vector) -> None:
    """The reason is there for people: some words, and not the code again."""
    reason: str = vector["reason"]
    assert len(reason.split()) >= 2
    assert not reason.endswith(".")


def from_json(value: Any) -> Value:
    """A CBOR value from its form in the vectors, where bytes are `{"$bytes": hex}`."""
    if isinstance(value, list):
        return [from_json(item) for item in value]
    if isinstance(value, dict):
        if set(value) == {"$bytes"}:
            return bytes.fromhex(value["$bytes"])
        return {key: from_json(item) for key, item in value.items()}
    scalar: Value = value
    return scalar
