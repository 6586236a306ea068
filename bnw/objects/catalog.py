"""Kinds in the public catalog: identity records, capability manifests, withdrawals, provider offers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bnw.identity.inbox_keys import INBOX_KEY_SIZE
from bnw.objects.body import Body
from bnw.objects.fields import (
    BOOLEAN,
    CONTENT_ID,
    NAME,
    SEQUENCE,
    TIME,
    array,
    choice,
    fail,
    raw_bytes,
    record,
    spec,
    text,
)
from bnw.wire.content_id import ContentId
from bnw.wire.limits import (
    CANCELLING_LIFETIME_MAX,
    CANCELLING_LIFETIME_MIN,
    IDENTITY_RECORD_LIFETIME,
    MANIFEST_LIFETIME,
    MAX_ENDPOINT_LENGTH,
    MAX_ENDPOINTS,
    MAX_INBOX_KEYS,
    MAX_MAILBOXES,
    OFFER_LIFETIME,
)

ENDPOINT = text(1, MAX_ENDPOINT_LENGTH)
"""An address as the transport writes it; opaque here."""
ENDPOINTS = array(ENDPOINT, 0, MAX_ENDPOINTS)

PROVIDE_PUBLISHER = "publisher"
PROVIDE_DELEGATED = "delegated"
PROVIDE_ANYONE = "anyone"


@dataclass(frozen=True, slots=True)
class PublicInboxKey:
    """A key to encrypt to, and the time in which new mail may use it."""

    key: bytes = spec(raw_bytes(INBOX_KEY_SIZE, INBOX_KEY_SIZE))
    not_after: int = spec(TIME)
    not_before: int = spec(TIME)


@dataclass(frozen=True, slots=True)
class Mailbox:
    """A node that holds mail for the identity while it is away."""

    endpoints: tuple[str, ...] = spec(ENDPOINTS)
    peer: str = spec(text(1, 128))


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityRecord(Body):
    """Where and how to write to the signer. The record with the highest sequence counts."""

    KIND: ClassVar[str] = "identity-record"
    MAX_LIFETIME: ClassVar[int] = IDENTITY_RECORD_LIFETIME

    inbox_keys: tuple[PublicInboxKey, ...] = spec(array(record(PublicInboxKey), 1, MAX_INBOX_KEYS))
    mailboxes: tuple[Mailbox, ...] = spec(array(record(Mailbox), 0, MAX_MAILBOXES))
    sequence: int = spec(SEQUENCE)

    def check(self) -> None:
        Body.check(self)
        for number, key in enumerate(self.inbox_keys):
            if key.not_before >= key.not_after:
                raise fail(f"{self.KIND}.inbox_keys[{number}]", "the key ends before it begins")


@dataclass(frozen=True, slots=True, kw_only=True)
class CapabilityManifest(Body):
    """The signer publishes a capability under `name`; what it does stands in the descriptor blob."""

    KIND: ClassVar[str] = "capability-manifest"
    MAX_LIFETIME: ClassVar[int] = MANIFEST_LIFETIME

    descriptor: ContentId = spec(CONTENT_ID)
    name: str = spec(NAME)
    provide: str = spec(choice(PROVIDE_PUBLISHER, PROVIDE_DELEGATED, PROVIDE_ANYONE))
    sequence: int = spec(SEQUENCE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawal(Body):
    """The signer's capability `name` is gone.

    It shares the manifest's sequence, so the later of the two counts, and lives longer than any manifest can, so a
    manifest that it cancels cannot come back when the withdrawal expires.
    """

    KIND: ClassVar[str] = "withdrawal"
    MIN_LIFETIME: ClassVar[int] = CANCELLING_LIFETIME_MIN
    MAX_LIFETIME: ClassVar[int] = CANCELLING_LIFETIME_MAX

    name: str = spec(NAME)
    sequence: int = spec(SEQUENCE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderOffer(Body):
    """The signer answers calls of `capability` (a manifest id) at `endpoints` until the offer expires."""

    KIND: ClassVar[str] = "provider-offer"
    MAX_LIFETIME: ClassVar[int] = OFFER_LIFETIME

    available: bool = spec(BOOLEAN)
    capability: ContentId = spec(CONTENT_ID)
    endpoints: tuple[str, ...] = spec(ENDPOINTS)
    sequence: int = spec(SEQUENCE)
