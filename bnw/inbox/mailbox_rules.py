"""Whom a mailbox serves, and how much it holds for each: durable in the store's records, in memory while it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar, Final

from bnw.identity.keys import IDENTITY_ID_SIZE, IdentityId, did_key
from bnw.objects.fields import TIME, integer, read_fields, spec, write_fields
from bnw.store.interface import Store
from bnw.wire.cbor import decode_map, encode
from bnw.wire.errors import ExitStatus, InvalidError, LocalError
from bnw.wire.limits import GIB, HOUR, INBOX_OBJECT_LIFETIME, KIB

MAX_SERVED: Final = 1000
"""Identities that one mailbox serves."""
DEFAULT_BYTES: Final = 2 * GIB
DEFAULT_OBJECTS: Final = 10_000
DEFAULT_AGE: Final = INBOX_OBJECT_LIFETIME
MAX_OBJECTS: Final = 100_000
"""Objects of one inbox. Whoever reads it has them compared, which takes memory and time with their number."""
_MAX_RULE: Final = KIB


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a mailbox holds for one identity at most: bytes with chunks, objects, and milliseconds from acceptance."""

    TABLE: ClassVar[str] = "mailbox-rules"

    age: int = spec(integer(HOUR, INBOX_OBJECT_LIFETIME))
    bytes: int = spec(integer(64 * KIB, 2**50))
    objects: int = spec(integer(1, MAX_OBJECTS))
    since: int = spec(TIME)
    """When it was first allowed."""


class MailboxRules:
    """`load` must have returned before anything else is asked."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._served: dict[IdentityId, Allowance] = {}

    @property
    def served(self) -> Mapping[IdentityId, Allowance]:
        return MappingProxyType(self._served)

    async def load(self) -> None:
        """Raises `LocalError` (`store-damaged`)."""
        for key, value in await self._store.list_records(Allowance.TABLE, limit=MAX_SERVED + 1):
            try:
                if len(key) != IDENTITY_ID_SIZE:
                    raise InvalidError("field", "an identity has 32 bytes")
                allowance = Allowance(**read_fields(Allowance, decode_map(value, max_size=_MAX_RULE), "mailbox rule"))
            except InvalidError as error:
                raise LocalError(
                    "store-damaged",
                    f"the rule of a mailbox cannot be read: {error.cause}",
                    place=key.hex(),
                    cure="restore the home from a backup",
                ) from error
            self._served[IdentityId(key)] = allowance

    async def allow(
        self,
        identity: IdentityId,
        *,
        now: int,
        bytes: int = DEFAULT_BYTES,
        objects: int = DEFAULT_OBJECTS,
        age: int = DEFAULT_AGE,
    ) -> Allowance:
        """Serve `identity` from now on, or under other bounds than before. What is held already stays.

        Raises `InvalidError` (`field`) for bounds out of range, `LocalError` (`too-many-served`).
        """
        before = self._served.get(identity)
        if before is None and len(self._served) >= MAX_SERVED:
            raise LocalError(
                "too-many-served",
                f"this mailbox serves {MAX_SERVED:,} identities already",
                cure="deny one of them first: `bnw mailbox list` shows them",
            )
        allowance = Allowance(age=age, bytes=bytes, objects=objects, since=now if before is None else before.since)
        data = encode(write_fields(allowance))
        read_fields(Allowance, decode_map(data, max_size=_MAX_RULE), "allowance")
        await self._store.put_record(Allowance.TABLE, identity, data)
        self._served[identity] = allowance
        return allowance

    async def deny(self, identity: IdentityId) -> None:
        """Take nothing more for `identity`. What is held stays until it is acknowledged or too old.

        Raises `LocalError` (`not-served`).
        """
        if identity not in self._served:
            raise LocalError(
                "not-served",
                "this mailbox does not serve the identity",
                place=did_key(identity),
                cure="`bnw mailbox list` shows whom it serves",
                exit_status=ExitStatus.USAGE,
            )
        await self._store.delete_record(Allowance.TABLE, identity)
        del self._served[identity]
