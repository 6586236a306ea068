"""Adversaries made by changing the store of a node that ships."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import anyio

from bnw.identity.keys import IdentityId
from bnw.node.node import Node
from bnw.objects.signed import SignedObject
from bnw.sim.calls import CallLog
from bnw.sim.disk import Disk, SimulatedStore
from bnw.sim.node import Parts, Shape, real_node
from bnw.sim.scenario.schema import CENSOR, WITHHOLD, WRONG_BLOBS
from bnw.store.interface import PutOutcome
from bnw.wire.content_id import ContentId

WRONG_SIZE: Final = 600
"""Bytes of an answer that was made up."""


class _WrongStore(SimulatedStore):
    """Gives other bytes than were asked for, for whatever blob."""

    def __init__(self, log: CallLog) -> None:
        super().__init__(Disk(can_crash=False))
        self._attacks = log

    async def get_blob(self, id: ContentId) -> bytes | None:
        self._attacks.attacks += 1
        data = await super().get_blob(id)
        if data:
            return bytes([data[0] ^ 1]) + data[1:]
        return (id * (WRONG_SIZE // len(id) + 1))[:WRONG_SIZE]


class _WithholdingStore(SimulatedStore):
    """Lets whoever asks for a blob wait for ever."""

    def __init__(self, log: CallLog) -> None:
        super().__init__(Disk(can_crash=False))
        self._attacks = log

    async def get_blob(self, id: ContentId) -> bytes | None:
        self._attacks.attacks += 1
        await anyio.sleep_forever()
        return None


class _CensoringStore(SimulatedStore):
    """Takes nothing in that another has signed, and says it had it before: it is neither forwarded nor offered."""

    def __init__(self, identity: IdentityId, log: CallLog) -> None:
        super().__init__(Disk(can_crash=False))
        self._identity = identity
        self._attacks = log

    async def put_objects(self, objects: Sequence[SignedObject], *, now: int) -> list[PutOutcome]:
        outcomes = []
        for obj in objects:
            if obj.signer == self._identity:
                outcomes += await super().put_objects([obj], now=now)
            else:
                self._attacks.attacks += 1
                outcomes.append(PutOutcome.KNOWN)
        return outcomes


def shape_of(kind: str, log: CallLog) -> Shape:
    """How an adversary of this kind is made; for kinds that only attack, as one that ships."""
    stores: dict[str, Callable[[Parts], SimulatedStore]] = {
        WRONG_BLOBS: lambda parts: _WrongStore(log),
        WITHHOLD: lambda parts: _WithholdingStore(log),
        CENSOR: lambda parts: _CensoringStore(parts.keys.identity, log),
    }
    make = stores.get(kind)
    if make is None:
        return real_node

    def shape(parts: Parts) -> Node:
        return Node(
            keys=parts.keys,
            store=make(parts),
            transport=parts.transport,
            environment=parts.environment,
            configuration=parts.configuration,
            plugins=parts.plugins,
        )

    return shape
