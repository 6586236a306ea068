"""Who sends payloads to whom in these tests, and shorthands for sealing and opening."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import replace

from bnw.identity.inbox_keys import InboxKey
from bnw.identity.keys import IdentityId, SigningKey
from bnw.inbox.access import AccessRecord
from bnw.inbox.manifest import read_access
from bnw.inbox.opening import opened_payload
from bnw.inbox.sealing import Outgoing
from bnw.objects.mail import PayloadManifest
from bnw.objects.signed import SignedObject, sign_object
from bnw.store.interface import Store
from bnw.wire.content_id import content_id

NOW = 1_800_000_000_000


class SeededEnvironment:
    """Random bytes from a seed; a clock that stands still."""

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)

    def now_ms(self) -> int:
        return NOW

    def random_bytes(self, count: int) -> bytes:
        return self._random.randbytes(count)


class Party:
    """Somebody with an identity and an inbox key."""

    def __init__(self, name: str) -> None:
        self.key = SigningKey(content_id(name.encode()))
        self.inbox_key = InboxKey(content_id(f"inbox of {name}".encode()), 0, 2 * NOW)

    @property
    def identity(self) -> IdentityId:
        return self.key.identity

    def read(self, manifest: SignedObject) -> AccessRecord:
        return read_access(manifest, reader=self.identity, inbox_keys=[self.inbox_key])


ALICE, BOB, CAROL, MALLORY = (Party(name) for name in ("alice", "bob", "carol", "mallory"))


def keys_of(*parties: Party) -> dict[IdentityId, bytes]:
    return {party.identity: party.inbox_key.public for party in parties}


def some_bytes(size: int, seed: int = 0) -> bytes:
    return random.Random(seed).randbytes(size)


class Pieces:
    """A source of the given pieces."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        for piece in self._pieces:
            return piece
        raise StopAsyncIteration


def outgoing(data: bytes, *, piece: int = 100_000, name: str | None = None) -> Outgoing:
    pieces = Pieces(data[start : start + piece] for start in range(0, len(data), piece))
    return Outgoing(pieces, "application/octet-stream", name, len(data))


async def opened(store: Store, manifest: SignedObject, reader: Party) -> bytes:
    async with opened_payload(store, manifest, reader.read(manifest)) as pieces:
        return b"".join([piece async for piece in pieces])


def body_of(manifest: SignedObject) -> PayloadManifest:
    assert isinstance(manifest.body, PayloadManifest)
    return manifest.body


def forged(manifest: SignedObject, signer: Party, **changes: object) -> SignedObject:
    """The manifest with changes, signed anew."""
    return sign_object(replace(body_of(manifest), **changes), signer.key)


async def put_all(store: Store, chunks: Sequence[bytes]) -> None:
    for chunk in chunks:
        await store.put_blob(chunk)
