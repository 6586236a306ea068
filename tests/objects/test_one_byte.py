"""Whoever changes one byte of a golden object has nothing (design section 6)."""

from __future__ import annotations

import cose
import pytest
from golden_vectors import Vector, vectors
from hypothesis import given
from hypothesis import strategies as st

from bnw.identity.keys import IdentityId
from bnw.inbox.access import open_access_record
from bnw.objects.signed import verify_object
from bnw.wire.errors import InvalidError

FILES = ("objects-catalog.json", "objects-authority.json", "objects-mail.json", "objects-calls.json")
OBJECTS = [vector for file in FILES for vector in vectors(file, "accepted")]
RECORDS = vectors("access-records.json", "accepted")
MASKS = (0x01, 0x80, 0xFF)
"""What is put over each byte: its lowest bit, its highest, all of them."""


def with_byte(data: bytes, at: int, mask: int) -> bytes:
    return data[:at] + bytes([data[at] ^ mask]) + data[at + 1 :]


@pytest.mark.parametrize("vector", OBJECTS, ids=lambda vector: vector["name"])
def test_a_change_of_any_byte_is_refused(vector: Vector) -> None:
    data = vector.bytes_of("object")
    assert verify_object(data)
    for at in range(len(data)):
        for mask in MASKS:
            with pytest.raises(InvalidError):
                verify_object(with_byte(data, at, mask))


@pytest.mark.parametrize("vector", OBJECTS, ids=lambda vector: vector["name"])
def test_a_byte_less_and_a_byte_more_is_refused(vector: Vector) -> None:
    data = vector.bytes_of("object")
    for at in range(len(data)):
        with pytest.raises(InvalidError):
            verify_object(data[:at] + data[at + 1 :])
        with pytest.raises(InvalidError):
            verify_object(data[:at])
    for extra in (b"\0", b"\xf6", b"\xff"):
        with pytest.raises(InvalidError):
            verify_object(data + extra)
        with pytest.raises(InvalidError):
            verify_object(extra + data)


@given(st.sampled_from(OBJECTS), st.data())
def test_a_change_of_any_byte_to_any_value_is_refused(vector: Vector, data: st.DataObject) -> None:
    encoded = vector.bytes_of("object")
    changed = with_byte(encoded, data.draw(st.integers(0, len(encoded) - 1)), data.draw(st.integers(1, 255)))
    with pytest.raises(InvalidError):
        verify_object(changed)


@given(st.sampled_from(OBJECTS), st.data())
def test_other_bytes_in_place_of_any_part_are_refused(vector: Vector, data: st.DataObject) -> None:
    encoded = vector.bytes_of("object")
    start = data.draw(st.integers(0, len(encoded)))
    end = data.draw(st.integers(start, min(len(encoded), start + 40)))
    instead = data.draw(st.binary(max_size=40))
    changed = encoded[:start] + instead + encoded[end:]
    if changed != encoded:
        with pytest.raises(InvalidError):
            verify_object(changed)


@given(st.sampled_from(OBJECTS), st.sampled_from(OBJECTS))
def test_a_part_of_one_object_does_not_fit_another(one: Vector, other: Vector) -> None:
    if one["object"] == other["object"]:
        return
    data = one.bytes_of("object")
    for mixed in (
        data[:-64] + other.bytes_of("object")[-64:],
        data.replace(one.bytes_of("payload"), other.bytes_of("payload")),
        data.replace(one.bytes_of("protected"), other.bytes_of("protected")),
    ):
        if mixed not in (data, other.bytes_of("object")):
            with pytest.raises(InvalidError):
                verify_object(mixed)


@given(st.sampled_from(OBJECTS), st.data())
def test_another_library_refuses_a_change_of_what_is_signed(vector: Vector, data: st.DataObject) -> None:
    encoded = vector.bytes_of("object")
    start = len(encoded) - 64 - len(vector.bytes_of("payload"))
    changed = with_byte(encoded, data.draw(st.integers(start, len(encoded) - 1)), data.draw(st.integers(1, 255)))
    assert not cose.holds(changed, vector.bytes_of("signer"))


@pytest.mark.parametrize("vector", RECORDS, ids=lambda vector: vector["name"])
def test_a_sealed_access_record_with_a_changed_byte_does_not_open(vector: Vector) -> None:
    sealed = vector.bytes_of("sealed")

    def opened(data: bytes) -> object:
        return open_access_record(
            data,
            private=vector.bytes_of("inbox_private"),
            inbox_key=vector.bytes_of("inbox_key"),
            sender=IdentityId(vector.bytes_of("sender")),
            recipient=IdentityId(vector.bytes_of("recipient")),
        )

    assert opened(sealed)
    for at in range(len(sealed)):
        with pytest.raises(InvalidError):
            opened(with_byte(sealed, at, 0x01))
    for other in (sealed[:-1], sealed + b"\0", b"\0" + sealed):
        with pytest.raises(InvalidError):
            opened(other)
