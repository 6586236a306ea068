"""Who may read an inbox scope: a challenge that is bound to both peers, the scope and a fresh nonce. Pure.

Whoever opens an inbox scope is challenged, whatever the scope, and answers with a signature of the identity whose inbox
it is. A mailbox that the identity's record names is known by its connection, which has authenticated its peer id; it
sends a signature of its own in the same place, so that the two look the same. Who may not read is answered like one who
reads an empty inbox: with the same messages, after the same work.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from bnw.identity.keys import IdentityId, SigningKey, is_valid_signature
from bnw.objects.catalog import IdentityRecord
from bnw.objects.rules import identity_slot, is_expired
from bnw.store.interface import Store
from bnw.store.scopes import inbox_scope
from bnw.transport.interface import PeerId
from bnw.wire.cbor import encode
from bnw.wire.environment import Environment

NONCE_SIZE: Final = 32
CONTEXT: Final = "bnw/1 inbox-reader"
"""First in what is signed, so that it can be nothing else: COSE signatures begin with another text."""


def reader_statement(*, reader: PeerId, server: PeerId, scope: str, nonce: bytes) -> bytes:
    """What a reader signs: deterministic CBOR of an array of context, both peers, scope and nonce."""
    return encode([CONTEXT, reader, server, scope, nonce])


@dataclass(frozen=True, slots=True)
class InboxReader:
    """The pulling side: who reads, from which peer."""

    key: SigningKey
    peer: PeerId

    def prove(self, *, server: PeerId, scope: str, nonce: bytes) -> bytes:
        return self.key.sign(reader_statement(reader=self.peer, server=server, scope=scope, nonce=nonce))


class InboxDoor:
    """The answering side. `nobody` is an identity that nobody else knows of, whose inbox is therefore empty."""

    def __init__(self, store: Store, environment: Environment, peer: PeerId) -> None:
        self._store = store
        self._environment = environment
        self._peer = peer
        self._nobody = inbox_scope(IdentityId(environment.random_bytes(32)))

    def challenge(self) -> bytes:
        return self._environment.random_bytes(NONCE_SIZE)

    async def readable(self, identity: IdentityId, *, reader: PeerId, nonce: bytes, signature: bytes) -> str:
        """The scope to answer from: the inbox of `identity`, or one that is empty. Raises `LocalError`."""
        scope = inbox_scope(identity)
        statement = reader_statement(reader=reader, server=self._peer, scope=scope, nonce=nonce)
        is_owner = is_valid_signature(identity, statement, signature)
        is_mailbox = reader in await mailboxes_of(self._store, identity, now=self._environment.now_ms())
        return scope if is_owner or is_mailbox else self._nobody


async def mailboxes_of(store: Store, identity: IdentityId, *, now: int) -> frozenset[PeerId]:
    """The peers that the current record of `identity` names as its mailboxes. Raises `LocalError`."""
    record = await store.held_in_slot(identity_slot(identity))
    if record is None or is_expired(record.body, now) or not isinstance(record.body, IdentityRecord):
        return frozenset()
    return frozenset(PeerId(mailbox.peer) for mailbox in record.body.mailboxes)
