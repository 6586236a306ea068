"""Bodies of every kind: what is built is read again, and what a reader would refuse is never signed."""

from __future__ import annotations

import dataclasses
from typing import Any

import cbor2
import pytest
from bodies import bodies
from golden_vectors import from_json, vectors
from hypothesis import given, settings
from hypothesis import strategies as st

from bnw.identity.keys import SigningKey
from bnw.objects.body import VERSION, Body
from bnw.objects.fields import codecs_of, write_fields
from bnw.objects.signed import KINDS, sign_object, verify_object
from bnw.wire.cbor import Value, decode_map, encode
from bnw.wire.errors import InvalidError
from bnw.wire.limits import MAX_SIGNED_OBJECT

KEY = SigningKey(bytes(range(32)))
FILES = ("objects-catalog.json", "objects-authority.json", "objects-mail.json", "objects-calls.json")
EXAMPLES: dict[str, list[dict[str, Any]]] = {kind: [] for kind in KINDS}
for _file in FILES:
    for _vector in vectors(_file, "accepted"):
        EXAMPLES[_vector["kind"]].append(from_json(_vector["body"]))  # type: ignore[arg-type]  # bodies are maps


def decode(kind: str, value: Any) -> Body:
    return KINDS[kind].decode(cbor2.dumps(value, canonical=True))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=25)
@given(data=st.data())
def test_what_is_signed_is_verified_as_it_was_built_and_encoded_as_its_fields(kind: str, data: st.DataObject) -> None:
    body = data.draw(bodies(kind))
    obj = sign_object(body, KEY)
    assert (obj.kind, obj.body, obj.signer) == (kind, body, KEY.identity)
    assert verify_object(obj.data) == obj
    assert len(obj.data) <= MAX_SIGNED_OBJECT
    value = decode_map(body.encode(), max_size=MAX_SIGNED_OBJECT)
    assert value == {"version": VERSION, **write_fields(body)}
    assert set(value) == {"version", *codecs_of(KINDS[kind])}
    assert cbor2.dumps(value, canonical=True) == body.encode()


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The place of every map and every value within a body."""
    found = [path]
    if isinstance(value, dict):
        for key, item in value.items():
            found += places(item, (*path, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            found += places(item, (*path, number))
    return found


def at(value: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


def with_value(value: Any, path: tuple[Any, ...], instead: Any) -> Any:
    """A copy of `value` with another value at `path`."""
    if not path:
        return instead
    copy = list(value) if isinstance(value, list) else dict(value)
    copy[path[0]] = with_value(value[path[0]], path[1:], instead)
    return copy


def in_words(kind: str, path: tuple[Any, ...]) -> str:
    return kind + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)


@pytest.mark.parametrize("kind", KINDS)
def test_an_unknown_field_is_refused_by_name_at_every_depth(kind: str) -> None:
    for example in EXAMPLES[kind]:
        for path in places(example):
            if isinstance(at(example, path), dict):
                changed = with_value(example, path, {**at(example, path), "new-field": None})
                with pytest.raises(InvalidError) as caught:
                    decode(kind, changed)
                assert caught.value.code == "unknown-field"
                assert caught.value.place == f"{in_words(kind, path)}.new-field"


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_field_is_refused_by_name_at_every_depth(kind: str) -> None:
    for example in EXAMPLES[kind]:
        for path in places(example):
            if path and isinstance(path[-1], str):
                parent = dict(at(example, path[:-1]))
                del parent[path[-1]]
                with pytest.raises(InvalidError) as caught:
                    decode(kind, with_value(example, path[:-1], parent))
                expected = "unknown-version" if path == ("version",) else "missing-field"
                assert caught.value.code == expected
                assert caught.value.place == in_words(kind, path)


WRONG: list[Any] = [None, True, -1, 2**53 - 1, "", "x", b"", b"x", [], [None], {}, {"x": 1}, 1.5]


@pytest.mark.parametrize("kind", KINDS)
def test_a_value_of_another_type_is_refused_at_its_place(kind: str) -> None:
    for example in EXAMPLES[kind]:
        for path in places(example):
            right = at(example, path)
            for wrong in WRONG:
                if type(wrong) is type(right) or (wrong is None and path[-1:] and _may_be_null(kind, path)):
                    continue
                if right is None and _may_be_null(kind, path):
                    continue
                with pytest.raises(InvalidError):
                    decode(kind, with_value(example, path, wrong))


def _may_be_null(kind: str, path: tuple[Any, ...]) -> bool:
    return any(path in places(example) and at(example, path) is None for example in EXAMPLES[kind])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("version", [0, 2, -1, 2**40, "1", b"1", [1], {}, None, True])
def test_an_unknown_version_is_refused_by_name_before_its_fields_are(kind: str, version: Value) -> None:
    with pytest.raises(InvalidError) as caught:
        decode(kind, {"version": version, "whatever": "this version has"})
    assert caught.value.code == "unknown-version"
    assert caught.value.place == f"{kind}.version"


@pytest.mark.parametrize("kind", KINDS)
def test_a_lifetime_is_bounded_on_both_sides_to_the_millisecond(kind: str) -> None:
    cls = KINDS[kind]
    example = EXAMPLES[kind][0]
    created = example["created"]
    changed = {**example, **({"deadline": created + 1} if "deadline" in example else {})}
    if "not_before" in changed:
        changed["not_before"] = created
    for life in (cls.MIN_LIFETIME, cls.MAX_LIFETIME):
        assert decode(kind, {**changed, "expires": created + life}).expires == created + life
    for life in (cls.MIN_LIFETIME - 1, cls.MAX_LIFETIME + 1, -created + 1):
        with pytest.raises(InvalidError) as caught:
            decode(kind, {**changed, "expires": created + life})
        assert (caught.value.code, caught.value.place) == ("lifetime", f"{kind}.expires")


@pytest.mark.parametrize("kind", KINDS)
def test_a_body_that_a_reader_would_refuse_is_never_signed(kind: str) -> None:
    body = decode(kind, EXAMPLES[kind][0])
    for change in ({"created": 0}, {"created": body.expires}, {"created": "now"}, {"expires": None}):
        with pytest.raises(InvalidError):
            sign_object(dataclasses.replace(body, **change), KEY)


def test_a_field_name_from_a_peer_cannot_command_a_terminal() -> None:
    with pytest.raises(InvalidError) as caught:
        decode("withdrawal", {**EXAMPLES["withdrawal"][0], "\x1b[31m" * 40: 1})
    assert caught.value.code == "unknown-field"
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("kind", KINDS)
@given(value=st.dictionaries(st.sampled_from(["version", "created", "name", "x"]), st.integers(0, 3), max_size=4))
@settings(max_examples=15)
def test_any_other_map_is_refused_as_invalid_and_nothing_worse(kind: str, value: dict[str, Value]) -> None:
    with pytest.raises(InvalidError):
        KINDS[kind].decode(encode(value))
