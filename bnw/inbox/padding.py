"""Padmé padding (Nikitin et al., "Reducing Metadata Leakage from Encrypted Files", PoPETs 2019), at least 4 KiB.

A padded length has no more significant bits than its exponent needs, so that a length L leaks O(log log L) bits and
costs at most 12 %, less for larger L.
"""

from __future__ import annotations

from bnw.wire.limits import MIN_PADDED_PAYLOAD


def padded_size(size: int) -> int:
    """How many bytes carry a plaintext of `size` bytes."""
    if size <= MIN_PADDED_PAYLOAD:
        return MIN_PADDED_PAYLOAD
    exponent = size.bit_length() - 1
    low_bits = exponent - exponent.bit_length()
    mask = (1 << low_bits) - 1
    return (size + mask) & ~mask
