"""Limits are those of design section 15, in real units."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bnw.wire import limits

MILLISECOND = timedelta(milliseconds=1)

SIZES = {
    "MAX_SIGNED_OBJECT": 64 * 1024,
    "MAX_DESCRIPTOR": 1024**2,
    "MAX_BLOB": 16 * 1024**2,
    "MAX_PAYLOAD": 1024**3,
    "PAYLOAD_CHUNK": 1024**2,
    "MIN_PADDED_PAYLOAD": 4 * 1024,
}
COUNTS = {"MAX_RECIPIENTS": 16, "MAX_DELEGATION_CHAIN": 8, "MAX_MEDIA_TYPES": 16, "MAX_CBOR_DEPTH": 16}
TIMES = {
    "CLOCK_SKEW": timedelta(minutes=5),
    "OFFER_LIFETIME": timedelta(hours=24),
    "IDENTITY_RECORD_LIFETIME": timedelta(days=30),
    "INBOX_OBJECT_LIFETIME": timedelta(days=30),
    "MANIFEST_LIFETIME": timedelta(days=366),
    "DELEGATION_LIFETIME": timedelta(days=366),
    "CANCELLING_LIFETIME_MIN": timedelta(days=366, minutes=10),
    "CANCELLING_LIFETIME_MAX": timedelta(days=732),
}


@pytest.mark.parametrize(("name", "value"), [*SIZES.items(), *COUNTS.items()])
def test_a_size_or_count_is_that_of_the_design(name: str, value: int) -> None:
    assert getattr(limits, name) == value


@pytest.mark.parametrize(("name", "duration"), TIMES.items())
def test_a_time_is_that_of_the_design(name: str, duration: timedelta) -> None:
    assert getattr(limits, name) * MILLISECOND == duration


def test_what_cancels_outlives_what_it_cancels_by_the_skew_of_two_clocks() -> None:
    longest = max(limits.MANIFEST_LIFETIME, limits.DELEGATION_LIFETIME)
    # The manifest may say that it was made a skew later than now, and the withdrawal a skew earlier than it was.
    margin = limits.CANCELLING_LIFETIME_MIN - longest
    assert margin * MILLISECOND == timedelta(minutes=10)
    assert margin == 2 * limits.CLOCK_SKEW


def test_integers_are_those_that_every_language_has() -> None:
    assert float(limits.MAX_INTEGER) == limits.MAX_INTEGER
    assert float(limits.MAX_INTEGER + 2) != limits.MAX_INTEGER + 2


def test_an_object_fits_a_frame_and_a_chunk_fits_a_blob() -> None:
    assert limits.MAX_SIGNED_OBJECT < limits.MAX_FRAME
    assert limits.PAYLOAD_CHUNK + 16 <= limits.MAX_BLOB


def test_the_chunks_of_a_manifest_suffice_for_the_largest_payload() -> None:
    # Padmé rounds no size above the next power of two, and 1 GiB is one, so padding never goes beyond it.
    assert limits.MAX_PAYLOAD_CHUNKS * limits.PAYLOAD_CHUNK >= limits.MAX_PAYLOAD
