"""Content ids (design section 4): the BLAKE3 hash of the exact bytes, with one text form."""

from __future__ import annotations

import pytest
from golden_vectors import Vector, golden, refused
from hypothesis import given
from hypothesis import strategies as st

from bnw.wire.content_id import CONTENT_ID_SIZE, ContentId, content_id, content_id_text, parse_content_id
from bnw.wire.errors import InvalidError

PUBLISHED = {
    0: "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262",
    1: "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213",
    1024: "42214739f095a406f3fc83deb889744ac00df831c10daa55189b5d121c855af7",
    1025: "d00278ae47eb27b34faecf67b4fe263f82d5412916c1ffd97c8cb7fb814b8444",
}
"""Hashes from the BLAKE3 test vectors, by the size of their input."""


@golden("content-ids.json", "accepted")
def test_bytes_have_this_id(vector: Vector) -> None:
    data, text = vector.bytes_of("bytes"), vector["id"]
    assert content_id_text(content_id(data)) == text
    assert parse_content_id(text) == content_id(data)
    assert content_id(bytearray(data)) == content_id(memoryview(data)) == content_id(data)


@golden("content-ids.json", "refused")
def test_another_text_is_refused(vector: Vector) -> None:
    with refused(vector):
        parse_content_id(vector["text"])


@pytest.mark.parametrize("size", PUBLISHED)
def test_ids_are_the_published_hashes(size: int) -> None:
    assert content_id(bytes(i % 251 for i in range(size))).hex() == PUBLISHED[size]


@given(st.binary(min_size=CONTENT_ID_SIZE, max_size=CONTENT_ID_SIZE))
def test_an_id_survives_its_text_form(raw: bytes) -> None:
    assert parse_content_id(content_id_text(ContentId(raw))) == raw


@given(st.binary(min_size=1, max_size=200), st.data())
def test_a_changed_byte_gives_another_id(raw: bytes, data: st.DataObject) -> None:
    changed = bytearray(raw)
    changed[data.draw(st.integers(0, len(raw) - 1))] ^= data.draw(st.integers(1, 255))
    assert content_id(changed) != content_id(raw)


@given(st.text(max_size=80))
def test_a_text_is_refused_or_is_the_text_form_of_what_it_reads_as(text: str) -> None:
    try:
        found = parse_content_id(text)
    except InvalidError:
        return
    assert content_id_text(found) == text


def test_a_refusal_of_a_long_text_is_short() -> None:
    with pytest.raises(InvalidError) as caught:
        parse_content_id("f" * 100_000)
    assert len(str(caught.value)) < 300
