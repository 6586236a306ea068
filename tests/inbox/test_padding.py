"""Padmé: what a padded length tells, and what it costs."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bnw.inbox.padding import padded_size
from bnw.wire.limits import GIB, KIB, MAX_PAYLOAD, MAX_PAYLOAD_CHUNKS, MIB, MIN_PADDED_PAYLOAD, PAYLOAD_CHUNK

SIZES = st.one_of(
    st.integers(0, MAX_PAYLOAD),
    st.integers(0, 100 * KIB),
    st.builds(lambda bits, offset: (1 << bits) + offset, st.integers(12, 29), st.integers(-2, 2)),
)


@pytest.mark.parametrize(
    ("size", "padded"),
    [
        (0, 4 * KIB),
        (10, 4 * KIB),
        (4 * KIB, 4 * KIB),
        # Worked out by hand from the paper: exponent 12 takes 4 bits to write, so the last 12 − 4 = 8 bits are zero.
        (4 * KIB + 1, 4 * KIB + 256),
        (8 * KIB - 1, 8 * KIB),
        # exponent 20, 5 bits: 15 zero bits
        (MIB + 1, MIB + 32 * KIB),
        (MIB, MIB),
        # exponent 29, 5 bits: 24 zero bits
        (GIB - 1, GIB),
        (GIB - 16 * MIB, GIB - 16 * MIB),
        (GIB - 16 * MIB + 1, GIB),
        (GIB, GIB),
    ],
)
def test_known_answers(size: int, padded: int) -> None:
    assert padded_size(size) == padded


@given(SIZES)
def test_a_padded_length_holds_the_plaintext_and_costs_at_most_12_percent(size: int) -> None:
    padded = padded_size(size)
    assert padded >= max(size, MIN_PADDED_PAYLOAD)
    if size > MIN_PADDED_PAYLOAD:
        assert padded - size < 0.12 * size


@given(SIZES)
def test_a_padded_length_is_padded_to_itself(size: int) -> None:
    assert padded_size(padded_size(size)) == padded_size(size)


@given(SIZES, SIZES)
def test_longer_is_never_padded_to_less(one: int, other: int) -> None:
    assert (one <= other) <= (padded_size(one) <= padded_size(other))


@given(st.integers(MIN_PADDED_PAYLOAD + 1, MAX_PAYLOAD))
def test_a_padded_length_needs_no_more_bits_than_a_floating_point_number_of_that_shape(size: int) -> None:
    """The definition in the paper, computed another way: mantissa no longer than the exponent."""
    padded = padded_size(size)
    exponent = int(math.log2(padded)) if padded & (padded - 1) == 0 else padded.bit_length() - 1
    mantissa_bits = int(math.log2(exponent)) + 1
    assert padded % (1 << (exponent - mantissa_bits)) == 0


def test_a_gibibyte_has_few_possible_lengths() -> None:
    lengths, size = 0, 0
    while size <= MAX_PAYLOAD:
        size = padded_size(size) + 1
        lengths += 1
    assert lengths < 600


def test_the_largest_payload_has_no_more_chunks_than_a_manifest_may_list() -> None:
    assert padded_size(MAX_PAYLOAD) // PAYLOAD_CHUNK <= MAX_PAYLOAD_CHUNKS
