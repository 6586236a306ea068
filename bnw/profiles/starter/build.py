"""The search: candidates for a value, each judged by the validator of the very schema that it must satisfy.

`values` yields what satisfies the schemas at the given places. It takes one view after the other (see `views`), and for
each the offers of the schema itself before values of its own making. Objects and arrays are built from the values of
their parts, the first of each; if the whole then breaks a rule between the parts, one part at a time is varied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Final

import jsonschema_rs

from bnw.profiles.json_reader import JsonValue
from bnw.profiles.pointer import token
from bnw.profiles.starter.patterns import samples
from bnw.profiles.starter.scalars import numbers, texts
from bnw.profiles.starter.views import View, Views

MAX_WORK: Final = 1_000_000
"""Values looked at in one search, those inside other values included; it bounds the time."""
MAX_NODES: Final = 10_000
"""Values within one document."""
_STEP: Final = 10
"""What a candidate or a view costs on top of its values."""
MAX_ITEMS: Final = 1000
"""Items of one array, or members of one object."""
_VARIANTS: Final = 6
"""Values of one member that are tried in its place."""
_KINDS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    (
        "object",
        ("properties", "required", "additionalProperties", "minProperties", "patternProperties", "propertyNames"),
    ),
    ("array", ("items", "prefixItems", "minItems", "contains", "uniqueItems")),
    ("string", ("minLength", "pattern", "format", "maxLength")),
    ("number", ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")),
)
_ANYTHING: Final = ("null", "string", "integer", "boolean", "object", "array", "number")

Places = tuple[str, ...]


class _Exhausted(Exception):
    """The search has taken all the steps it may."""


class Builder:
    """One search with a budget of its own."""

    def __init__(self, views: Views, validators: Sequence[jsonschema_rs.ValidatorMap], *, unlikely: bool) -> None:
        """`validators` judge the parts of the schema by place; a value must satisfy all of them. `unlikely` also tries
        types that a schema without `type` allows but plainly does not mean, such as null where members are required."""
        self.views = views
        self.unlikely = unlikely
        self.validators = validators
        self.work = 0
        self.kept: dict[tuple[Places, int], list[JsonValue]] = {}

    def values(self, places: Places, depth: int) -> Iterator[JsonValue]:
        """Values valid at `places` with at most `depth` levels; none once the budget is spent."""
        try:
            yield from self._values(places, depth)
        except (_Exhausted, RecursionError):
            return

    def _values(self, places: Places, depth: int) -> Iterator[JsonValue]:
        offered: list[JsonValue] = []
        for view in self.views.of(places):
            self._spend(_STEP)
            for value in self._candidates(view, depth):
                nodes = _nodes(value)
                self._spend(_STEP + nodes)
                if nodes <= MAX_NODES and self._fits(places, value) and not _among(value, offered):
                    offered.append(value)
                    yield value

    def _spend(self, work: int) -> None:
        self.work += work
        if self.work > MAX_WORK:
            raise _Exhausted

    def _some(self, places: Places, depth: int, wanted: int = _VARIANTS) -> list[JsonValue]:
        """The first few values, remembered, because recursive schemas come back to the same places."""
        key = (places, depth)
        kept = self.kept.get(key)
        if kept is None or (len(kept) < wanted and len(kept) >= _VARIANTS):
            kept = list(islice(self._values(places, depth), max(wanted, _VARIANTS)))
            self.kept[key] = kept
        return kept

    def _fits(self, places: Places, value: JsonValue) -> bool:
        for place in places:
            for validators in self.validators:
                validator = validators.get("#" + place)
                if validator is not None and not validator.is_valid(value):
                    return False
            if self.views.references.schema_at(place) is False:
                return False
        return True

    def _candidates(self, view: View, depth: int) -> Iterator[JsonValue]:
        for constant in view.all("const"):
            yield constant
            return
        yield from view.all("default")
        for examples in view.all("examples"):
            if isinstance(examples, list):
                yield from examples[:_VARIANTS]
        for options in view.all("enum"):
            if isinstance(options, list):
                yield from options
                return
        for kind in _kinds(view, unlikely=self.unlikely):
            yield from self._made(kind, view, depth)

    def _made(self, kind: str, view: View, depth: int) -> Iterator[JsonValue]:
        if kind == "null":
            yield None
        elif kind == "boolean":
            yield from (False, True)
        elif kind in ("integer", "number"):
            yield from numbers(view, integer=kind == "integer")
        elif kind == "string":
            yield from texts(view)
        elif depth > 0:
            yield from self._arrays(view, depth) if kind == "array" else self._objects(view, depth)

    def _objects(self, view: View, depth: int) -> Iterator[JsonValue]:
        required = list(dict.fromkeys(name for names in view.all("required") for name in _texts(names)))
        optional = [name for members in view.all("properties") for name in _names(members) if name not in required]
        least = view.size("minProperties", 0)
        most = view.size("maxProperties", MAX_ITEMS)
        chosen = self._with_dependents(view, required)
        if len(chosen) < least:
            chosen = self._filled(view, chosen, optional, least, depth)
        if len(chosen) > min(most, MAX_ITEMS):
            return
        yield from self._objects_of(view, chosen, depth)
        for name in optional[:_VARIANTS]:
            if name not in chosen and len(chosen) < most:
                yield from islice(self._objects_of(view, self._with_dependents(view, [*chosen, name]), depth), 1)

    def _objects_of(self, view: View, names: list[str], depth: int) -> Iterator[JsonValue]:
        columns: list[list[JsonValue]] = []
        for name in names:
            column = self._some(_member_places(view, name), depth - 1)
            if not column:
                return
            columns.append(column)
        yield from _varied(columns, lambda row: dict(zip(names, row, strict=True)))

    def _with_dependents(self, view: View, names: list[str]) -> list[str]:
        """`names` and those that come with them."""
        names = list(names)
        for name in names:
            for dependents in view.all("dependentRequired"):
                if isinstance(dependents, dict):
                    names.extend(extra for extra in _texts(dependents.get(name)) if extra not in names)
        return names

    def _filled(self, view: View, names: list[str], optional: list[str], least: int, depth: int) -> list[str]:
        """More members, known ones first, until there are enough."""
        names = list(names)
        invented = (f"member{number}" for number in range(1, MAX_ITEMS))
        patterns = [pattern for members in view.all("patternProperties") for pattern in _names(members)]
        allowed = [schema for schema in view.all("propertyNames") if isinstance(schema, dict)]
        patterns += [str(schema["pattern"]) for schema in allowed if "pattern" in schema]
        listed = [name for schema in allowed for name in _texts(schema.get("enum"))]
        matching = (text for pattern in patterns for text in islice(samples(pattern), 64))
        for source in (iter(optional), iter(listed), matching, invented):
            for name in source:
                if len(names) >= min(least, MAX_ITEMS):
                    return names
                usable = name not in names and all(_name_fits(name, schema) for schema in allowed)
                if usable and self._some(_member_places(view, name), depth - 1):
                    names.append(name)
        return names

    def _arrays(self, view: View, depth: int) -> Iterator[JsonValue]:
        length = view.size("minItems", 0)
        yield from self._arrays_of(view, depth, length)
        yield from islice(self._arrays_of(view, depth, length + 1), _VARIANTS)

    def _arrays_of(self, view: View, depth: int, length: int) -> Iterator[JsonValue]:
        most = min(view.size("maxItems", MAX_ITEMS), MAX_ITEMS)
        contained = tuple(f"{part.place}/contains" for part in view.parts if "contains" in part.schema)
        lacking = view.size("minContains", 1) if contained else 0
        unique = any(value is True for value in view.all("uniqueItems"))
        columns: list[list[JsonValue]] = []
        taken: list[JsonValue] = []
        while len(columns) < length or lacking > 0:
            if len(columns) >= most:
                return
            places = _item_places(view, len(columns))
            wanted = max(length, _VARIANTS) if unique else _VARIANTS
            options: list[JsonValue] = []
            if lacking > 0:
                options = self._some((*places, *contained), depth - 1, wanted)
                options = [option for option in options if not (unique and _among(option, taken))]
                lacking -= 1 if options else 0
            if not options:
                options = self._some(places, depth - 1, wanted)
                options = [option for option in options if not (unique and _among(option, taken))]
            if not options:
                return
            taken.append(options[0])
            columns.append(options[:1] if unique else options[:_VARIANTS])
        yield from _varied(columns, list)


def _varied(columns: list[list[JsonValue]], make: Callable[[list[JsonValue]], JsonValue]) -> Iterator[JsonValue]:
    """The first value of each column; then with one column changed at a time, then with all of them changed."""
    first = [column[0] for column in columns]
    yield make(first)
    for index, column in enumerate(columns):
        for value in column[1:]:
            yield make([*first[:index], value, *first[index + 1 :]])
    if len(columns) > 1:
        for turn in range(1, _VARIANTS):
            yield make([column[turn % len(column)] for column in columns])


def _member_places(view: View, name: str) -> Places:
    """Where the schemas of an object's member `name` stand."""
    places: list[str] = []
    for part in view.parts:
        schema, known = part.schema, False
        if _has(schema.get("properties"), name):
            places.append(f"{part.place}/properties{token(name)}")
            known = True
        for pattern in _names(schema.get("patternProperties")):
            if _matches(pattern, name):
                places.append(f"{part.place}/patternProperties{token(pattern)}")
                known = True
        if not known and "additionalProperties" in schema:
            places.append(f"{part.place}/additionalProperties")
    return tuple(places)


def _item_places(view: View, index: int) -> Places:
    """Where the schemas of an array's item number `index` stand."""
    places: list[str] = []
    for part in view.parts:
        prefix = part.schema.get("prefixItems")
        if isinstance(prefix, list) and index < len(prefix):
            places.append(f"{part.place}/prefixItems/{index}")
        elif "items" in part.schema:
            places.append(f"{part.place}/items")
    return tuple(places)


def _kinds(view: View, *, unlikely: bool) -> list[str]:
    """The types to try, likely ones first."""
    kinds: list[str] | None = None
    for value in view.all("type"):
        names = [value] if isinstance(value, str) else _texts(value)
        kinds = names if kinds is None else _common(kinds, names)
    if kinds is not None:
        return kinds
    hinted = [kind for kind, keywords in _KINDS if any(view.all(keyword) for keyword in keywords)]
    if hinted and not unlikely:
        return hinted
    return [*hinted, *(kind for kind in _ANYTHING if kind not in hinted)]


def _common(left: list[str], right: list[str]) -> list[str]:
    """The types in both lists; an integer is a number too."""
    kept = [kind for kind in left if kind in right or (kind == "integer" and "number" in right)]
    return [*kept, "integer"] if "number" in left and "integer" in right and "integer" not in kept else kept


def _nodes(value: JsonValue) -> int:
    """How many values `value` is made of; counting stops above `MAX_NODES`, for parts that are shared may be legion."""
    count = 0
    stack = [value]
    while stack and count <= MAX_NODES:
        item = stack.pop()
        count += 1
        if isinstance(item, list):
            stack.extend(item)
        elif isinstance(item, dict):
            stack.extend(item.values())
    return count


def _among(value: JsonValue, others: list[JsonValue]) -> bool:
    return any(type(value) is type(other) and value == other for other in others)


def _texts(value: JsonValue) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _names(value: JsonValue) -> list[str]:
    return list(value) if isinstance(value, dict) else []


def _has(value: JsonValue, name: str) -> bool:
    return isinstance(value, dict) and name in value


@lru_cache(maxsize=1024)
def _matches(pattern: str, name: str) -> bool:
    return bool(jsonschema_rs.is_valid({"pattern": pattern}, name))


def _name_fits(name: str, schema: dict[str, JsonValue]) -> bool:
    try:
        return bool(jsonschema_rs.is_valid(schema, name, offline=True))
    except (ValueError, jsonschema_rs.ReferencingError):
        return True
