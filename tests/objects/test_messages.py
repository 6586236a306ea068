"""Messages between peers (design section 14): typed maps, read as strictly as signed objects."""

from __future__ import annotations

import re
from types import ModuleType

import cddl
import pytest
from golden_vectors import Vector, from_json, golden, refused, vectors
from hypothesis import given
from hypothesis import strategies as st

from bnw.blobs import protocol as blobs
from bnw.inbox import delivery
from bnw.objects.message import Message, read_message
from bnw.wire.cbor import decode_map, encode
from bnw.wire.errors import InvalidError
from bnw.wire.limits import MAX_FRAME

PROTOCOLS: dict[str, ModuleType] = {blobs.BLOB_PROTOCOL: blobs, delivery.DELIVER_PROTOCOL: delivery}


def messages_of(module: ModuleType) -> dict[str, type[Message]]:
    """The messages of a protocol, by type."""
    classes = [value for value in vars(module).values() if isinstance(value, type) and issubclass(value, Message)]
    return {cls.TYPE: cls for cls in classes if cls is not Message}


def types_in_cddl() -> dict[str, str]:
    """The type of each rule that is a message."""
    return dict(re.findall(r'^([a-z-]+) = \{\s+type: "([a-z-]+)"', cddl.source(), re.MULTILINE))


def class_of(vector: Vector) -> type[Message]:
    return messages_of(PROTOCOLS[vector["protocol"]])[types_in_cddl()[vector["rule"]]]


@golden("messages.json", "accepted")
def test_a_message_has_these_bytes(vector: Vector) -> None:
    data, cls = vector.bytes_of("hex"), class_of(vector)
    message = read_message(decode_map(data, max_size=MAX_FRAME), cls)
    assert message.to_wire() == from_json(vector["message"])
    assert encode(message.to_wire()) == data
    assert cddl.accepts(vector["rule"], data)


@golden("messages.json", "refused")
def test_another_message_is_refused(vector: Vector) -> None:
    data, cls = vector.bytes_of("hex"), class_of(vector)
    with refused(vector):
        read_message(decode_map(data, max_size=MAX_FRAME), cls)
    assert not cddl.accepts(vector["rule"], data)


def test_the_messages_of_the_cddl_are_those_of_the_code() -> None:
    of_the_code = [type_ for module in PROTOCOLS.values() for type_ in messages_of(module)]
    assert sorted(types_in_cddl().values()) == sorted(of_the_code)


@pytest.mark.parametrize("vector", vectors("messages.json", "accepted"), ids=lambda vector: vector["rule"])
def test_a_message_is_a_request_or_an_answer_of_its_protocol(vector: Vector) -> None:
    sides = ["blob-request", "blob-answer", "delivery-request", "delivery-answer"]
    taken = [side for side in sides if cddl.accepts(side, vector.bytes_of("hex"))]
    requests = {"blob-get", "delivery", "parcel", "knock"}
    protocol = vector["protocol"].split("/")[2].replace("deliver", "delivery")
    assert taken == [f"{protocol}-{'request' if vector['rule'] in requests else 'answer'}"]


def test_a_stream_that_ends_is_no_message() -> None:
    with pytest.raises(InvalidError, match="get or blob") as caught:
        read_message(None, blobs.GetBlob, blobs.BlobFollows)
    assert caught.value.code == "message"


def test_a_message_of_another_type_is_named_and_what_was_expected_too() -> None:
    with pytest.raises(InvalidError, match="'absent' where get was expected"):
        read_message(blobs.BlobAbsent().to_wire(), blobs.GetBlob)


@given(st.lists(st.binary(min_size=1, max_size=50), min_size=1, max_size=16))
def test_a_delivery_comes_out_as_it_went_in(objects: list[bytes]) -> None:
    sent = delivery.Deliver(tuple(objects))
    data = encode(sent.to_wire())
    assert read_message(decode_map(data, max_size=MAX_FRAME), delivery.Deliver) == sent
    assert cddl.accepts("delivery", data)
