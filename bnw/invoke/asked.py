"""The requester's durable memory of its calls: everything that is needed to go on with one, show it, and prove it.

A record holds the signed objects themselves, because those in the store go when they expire, and a proof is wanted
longer than that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from bnw.invoke.machines.requester import ABANDONED, ANSWERED, SENT, SIGNED
from bnw.objects.calls import Invocation, InvocationUpdate
from bnw.objects.fields import TIME, array, choice, optional, raw_bytes, read_fields, spec, write_fields
from bnw.objects.signed import SignedObject, trusted_object
from bnw.store.interface import Store
from bnw.wire.cbor import decode_map, encode
from bnw.wire.content_id import ContentId
from bnw.wire.errors import InvalidError, LocalError
from bnw.wire.limits import DAY, MAX_DELEGATION_CHAIN, MAX_SIGNED_OBJECT

MAX_RECORD: Final = 900 * 1024
MAX_UPDATES_KEPT: Final = 64
"""The latest updates of a call."""
MAX_CALLS: Final = 10_000
"""Calls that are remembered. Beyond that the oldest that are settled are forgotten first."""
KEPT_FOR: Final = 90 * DAY
"""After the invocation has expired."""
PAGE: Final = 500

_OBJECT = raw_bytes(1, MAX_SIGNED_OBJECT)


@dataclass(frozen=True, slots=True)
class AskedCall:
    """One call as its requester remembers it. Objects are whole envelopes.

    `second_receipt` is one that contradicts the first: proof that the provider lied.
    """

    TABLE: ClassVar[str] = "asked-calls"

    cancellation: bytes | None = spec(optional(_OBJECT))
    delegations: tuple[bytes, ...] = spec(array(_OBJECT, 0, MAX_DELEGATION_CHAIN))
    input: bytes = spec(_OBJECT)
    invocation: bytes = spec(_OBJECT)
    manifest: bytes = spec(_OBJECT)
    offer: bytes = spec(_OBJECT)
    output: bytes | None = spec(optional(_OBJECT))
    receipt: bytes | None = spec(optional(_OBJECT))
    second_receipt: bytes | None = spec(optional(_OBJECT))
    settled: int | None = spec(optional(TIME))
    state: str = spec(choice(SIGNED, SENT, ANSWERED, ABANDONED))
    updates: tuple[bytes, ...] = spec(array(_OBJECT, 0, MAX_UPDATES_KEPT))

    @property
    def signed_invocation(self) -> SignedObject:
        return trusted_object(self.invocation)

    @property
    def body(self) -> Invocation:
        body = self.signed_invocation.body
        assert isinstance(body, Invocation)
        return body

    @property
    def signed_receipt(self) -> SignedObject | None:
        return None if self.receipt is None else trusted_object(self.receipt)

    @property
    def latest_update(self) -> InvocationUpdate | None:
        if not self.updates:
            return None
        body = trusted_object(self.updates[-1]).body
        assert isinstance(body, InvocationUpdate)
        return body

    def with_update(self, update: SignedObject) -> AskedCall | None:
        """With `update` as the latest; None if a later one is here already, or this very one."""
        assert isinstance(update.body, InvocationUpdate)
        latest = self.latest_update
        if latest is not None and update.body.sequence <= latest.sequence:
            return None
        return replace(self, updates=(*self.updates, update.data)[-MAX_UPDATES_KEPT:])


class AskedCalls:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def get(self, id: ContentId) -> AskedCall | None:
        data = await self._store.get_record(AskedCall.TABLE, id)
        return None if data is None else _decode(id, data)

    async def put(self, id: ContentId, call: AskedCall, objects: Sequence[SignedObject] = (), *, now: int) -> None:
        """Remember `call`, and `objects` with it, before returning."""
        await self._store.put_record_with_objects(AskedCall.TABLE, id, encode(write_fields(call)), objects, now=now)

    async def all(self) -> list[tuple[ContentId, AskedCall]]:
        """Ordered by the time they were made, the latest first."""
        found: list[tuple[ContentId, AskedCall]] = []
        after: bytes | None = None
        while True:
            page = await self._store.list_records(AskedCall.TABLE, after=after, limit=PAGE)
            found += [(ContentId(key), _decode(key, value)) for key, value in page]
            if len(page) < PAGE:
                return sorted(found, key=lambda item: (-item[1].body.created, item[0]))
            after = page[-1][0]

    async def remove_old(self, now: int) -> None:
        """Forget calls that expired long ago, and the oldest settled ones beyond `MAX_CALLS`."""
        calls = await self.all()
        for number, (id, call) in enumerate(calls):
            too_many = number >= MAX_CALLS and call.state in {ANSWERED, ABANDONED}
            if too_many or now >= call.body.expires + KEPT_FOR:
                await self._store.delete_record(AskedCall.TABLE, id)


def _decode(key: bytes, data: bytes) -> AskedCall:
    try:
        return AskedCall(**read_fields(AskedCall, decode_map(data, max_size=MAX_RECORD), "asked-call"))
    except InvalidError as error:
        raise LocalError(
            "store-damaged",
            f"the record of a call cannot be read: {error.cause}",
            place=key.hex(),
            cure="restore the home from a backup",
        ) from error
