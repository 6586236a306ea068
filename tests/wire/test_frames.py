"""Frames (design section 14): a length, then a map; the reader holds no more than one frame of the size it allows."""

from __future__ import annotations

from typing import Any

import pytest
from golden_vectors import Vector, from_json, golden, refused
from hypothesis import given
from hypothesis import strategies as st

from bnw.wire.cbor import Value, encode
from bnw.wire.errors import InvalidError
from bnw.wire.frames import FrameDecoder, encode_frame
from bnw.wire.limits import MAX_FRAME

messages = st.lists(
    st.dictionaries(st.text("abc", max_size=3), st.integers(0, 300) | st.binary(max_size=30)), max_size=6
)


def everything(decoder: FrameDecoder) -> list[dict[str, Value]]:
    found = []
    while (message := decoder.next_message()) is not None:
        found.append(message)
    return found


@golden("frames.json", "accepted")
def test_bytes_become_these_messages(vector: Vector) -> None:
    data, size = vector.bytes_of("hex"), vector["max_size"]
    expected: list[Any] = [from_json(message) for message in vector["messages"]]
    decoder = FrameDecoder(max_size=size)
    decoder.feed(data)
    assert everything(decoder) == expected
    assert decoder.is_empty == vector["whole"]
    written = b"".join(encode_frame(message, max_size=size) for message in expected)
    assert data.startswith(written)
    assert (data == written) == vector["whole"]


@golden("frames.json", "refused")
def test_a_bad_frame_is_refused(vector: Vector) -> None:
    decoder = FrameDecoder(max_size=vector["max_size"])
    decoder.feed(vector.bytes_of("hex"))
    with refused(vector):
        decoder.next_message()


@given(messages, st.data())
def test_however_the_bytes_are_cut_the_messages_are_the_same(sent: list[dict[str, Value]], data: st.DataObject) -> None:
    stream = b"".join(encode_frame(message) for message in sent)
    decoder, found = FrameDecoder(), []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        decoder.feed(stream[:size])
        stream = stream[size:]
        found += everything(decoder)
    assert found == sent
    assert decoder.is_empty


@given(messages.filter(bool), st.binary(max_size=50), st.data())
def test_raw_bytes_after_a_message_come_out_as_they_went_in(
    sent: list[dict[str, Value]], raw: bytes, data: st.DataObject
) -> None:
    decoder = FrameDecoder()
    decoder.feed(encode_frame(sent[0]) + raw)
    assert decoder.next_message() == sent[0]
    first = data.draw(st.integers(0, len(raw)))
    assert decoder.take(first) + decoder.take(len(raw) + 1) == raw
    assert decoder.is_empty


def test_a_message_of_exactly_the_limit_passes_and_a_byte_more_does_not() -> None:
    overhead = len(encode({"": bytes(MAX_FRAME - 10)})) - (MAX_FRAME - 10)
    largest: dict[str, Value] = {"": bytes(MAX_FRAME - overhead)}
    decoder = FrameDecoder()
    decoder.feed(encode_frame(largest))
    assert decoder.next_message() == largest
    larger: dict[str, Value] = {"": bytes(MAX_FRAME - overhead + 1)}
    with pytest.raises(InvalidError) as caught:
        encode_frame(larger)
    assert caught.value.code == "frame-too-large"


def test_a_message_outside_the_subset_is_not_framed() -> None:
    with pytest.raises(InvalidError) as caught:
        encode_frame({"a": 1.5})  # type: ignore[dict-item]  # the point of the test
    assert caught.value.code == "cbor-type"
