"""Bounds of a store, by name, and the checks of what callers hand in. Sizes are bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bnw.objects.rules import is_expired
from bnw.objects.signed import SignedObject
from bnw.wire.errors import InvalidError
from bnw.wire.limits import KIB, MAX_BLOB, MIB

MAX_RECORD: Final = 1 * MIB

MAX_PROOFS_PER_SIGNER: Final = 8
"""Equivocations of one signer that are kept as pairs. One convicts; a few show a habit."""
RESERVED_OBJECTS: Final = 512
RESERVED_BYTES: Final = 512 * KIB
"""Beyond a signer's quota, for withdrawals and revocations alone."""
MAX_SUPERSEDED_PER_SIGNER: Final = 256
"""Ids of one signer's replaced objects that are remembered; the oldest are forgotten first."""

INLINE_BLOB: Final = 32 * KIB
"""Blobs up to this size are kept in the database, where one flush makes many of them durable.

Measured with 64 puts at a time: 26 times as many a second as files at 1 KiB, 4 times at 16 KiB, even at 100 KiB.
"""

MAX_WAITING_WRITES: Final = 512
"""Writes that wait for the disk; further callers wait for room."""
MAX_BATCH_WRITES: Final = 256
"""Writes in one transaction."""
MAX_BATCH_BYTES: Final = 4 * MIB
"""No further write joins a transaction of this size, so that the first does not wait long for the last."""
MAX_REMOVED_AT_ONCE: Final = 1000
"""Expired objects that one transaction removes, so that other writes get their turn."""
READERS: Final = 2
"""Connections that read beside the writer."""
BLOB_THREADS: Final = 4
"""Blob files that are read or written at the same time."""


def check_blob_size(data: bytes) -> None:
    if len(data) > MAX_BLOB:
        raise InvalidError(
            "too-large",
            f"a blob of {len(data):,} bytes exceeds the limit of {MAX_BLOB:,}",
            cure="send it as a payload, which travels in chunks",
        )


def check_record_size(value: bytes) -> None:
    if len(value) > MAX_RECORD:
        raise InvalidError(
            "too-large",
            f"a record of {len(value):,} bytes exceeds the limit of {MAX_RECORD:,}",
            cure="keep the bytes as a blob and its id in the record",
        )


def check_unexpired(objects: Sequence[SignedObject], now: int) -> None:
    """Raise `InvalidError` (`expired`) if any object had expired at `now`."""
    for obj in objects:
        if is_expired(obj.body, now):
            raise InvalidError(
                "expired",
                f"the {obj.kind} expired {now - obj.body.expires} ms before it was put",
                place=obj.id.hex(),
                cure="check the time of an object before it is put, with the same `now`",
            )
