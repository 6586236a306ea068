"""Everything that a schema says of one value, gathered from wherever it says it.

A value may answer to several schemas at once: its own, those it refers to, each part of an `allOf`, one branch of an
`anyOf` or `oneOf`, the `then` or `else` of a condition. A *view* is the flat list of plain schemas that apply for one
choice of branches, and `Views.of` lists the views of a set of places, likely ones first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from bnw.profiles.json_reader import JsonValue
from bnw.profiles.pointer import token
from bnw.profiles.starter.references import References, Schema

MAX_VIEWS: Final = 64
"""Choices of branches tried for one value."""
_MAX_PARTS: Final = 256
"""Schemas that may apply to one value at once."""


@dataclass(frozen=True)
class Part:
    """One schema of a view, and its place in the root schema."""

    place: str
    schema: dict[str, JsonValue]


@dataclass(frozen=True)
class View:
    parts: tuple[Part, ...]

    def all(self, keyword: str) -> list[JsonValue]:
        """The values that the parts give `keyword`."""
        return [part.schema[keyword] for part in self.parts if keyword in part.schema]

    def numbers(self, keyword: str) -> list[int | float]:
        return [value for value in self.all(keyword) if isinstance(value, int | float) and not isinstance(value, bool)]

    def size(self, keyword: str, default: int) -> int:
        """The strictest lower (`min...`) or upper (`max...`) count."""
        values = [int(value) for value in self.numbers(keyword)]
        if not values:
            return default
        return max(values) if keyword.startswith("min") else min(values)


class Views:
    """The views of one root schema."""

    def __init__(self, root: Schema) -> None:
        self.references = References(root)

    def of(self, places: tuple[str, ...]) -> Iterator[View]:
        """The views of a value that must satisfy the schemas at all of `places`; at most `MAX_VIEWS`."""
        for count, parts in enumerate(self._gather(list(places), [], frozenset())):
            if count >= MAX_VIEWS:
                return
            yield View(tuple(parts))

    def _gather(self, open_: list[str], parts: list[Part], seen: frozenset[str]) -> Iterator[list[Part]]:
        """Work through the places in `open_`; split where there is a choice."""
        open_ = list(open_)
        parts = list(parts)
        while open_:
            place = open_.pop(0)
            if place in seen:
                continue
            seen |= {place}
            schema = self.references.schema_at(place)
            if schema is True:
                continue
            if not isinstance(schema, dict) or len(parts) >= _MAX_PARTS:
                return  # false, or not a schema: nothing satisfies it
            parts.append(Part(place, schema))
            for keyword in ("$ref", "$dynamicRef"):
                reference = schema.get(keyword)
                if isinstance(reference, str):
                    target = self.references.resolve(reference, place)
                    if target is None:
                        return
                    open_.append(target)
            all_of = schema.get("allOf")
            if isinstance(all_of, list):
                open_.extend(f"{place}/allOf/{index}" for index in range(len(all_of)))
            open_.extend(_with_required(place, schema))
            for choice in self._choices(place, schema):
                yield from self._split(choice, open_, parts, seen)
                return
        yield parts

    def _split(
        self, choice: list[list[str]], open_: list[str], parts: list[Part], seen: frozenset[str]
    ) -> Iterator[list[Part]]:
        for branch in choice:
            yield from self._gather(branch + open_, parts, seen)

    def _choices(self, place: str, schema: dict[str, JsonValue]) -> Iterator[list[list[str]]]:
        """The choices that a schema leaves, multiplied out into one list of combinations of places."""
        combinations: list[list[str]] = [[]]
        for keyword in ("oneOf", "anyOf"):
            branches = schema.get(keyword)
            if isinstance(branches, list) and branches:
                places = [f"{place}/{keyword}/{index}" for index in range(len(branches))]
                combinations = [[*before, one] for one in places for before in combinations][:MAX_VIEWS]
        if "if" in schema and ("then" in schema or "else" in schema):
            then = [f"{place}/then"] if "then" in schema else []
            otherwise = [f"{place}/else"] if "else" in schema else []
            ways = [otherwise, [f"{place}/if", *then], then]
            combinations = [[*before, *way] for way in ways for before in combinations][: 2 * MAX_VIEWS]
        if len(combinations) > 1 or combinations[0]:
            yield combinations


def _with_required(place: str, schema: dict[str, JsonValue]) -> list[str]:
    """The places of `dependentSchemas` that apply because the same schema requires their member."""
    dependents, required = schema.get("dependentSchemas"), schema.get("required")
    if not isinstance(dependents, dict) or not isinstance(required, list):
        return []
    return [f"{place}/dependentSchemas{token(name)}" for name in dependents if name in required]
