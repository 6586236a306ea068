"""A peer that connects, lets streams be opened, and never answers or forwards anything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import anyio

from bnw.blobs.protocol import BLOB_PROTOCOL
from bnw.gossip.catalog_gossip import catalog_topic
from bnw.inbox.delivery import DELIVER_PROTOCOL
from bnw.sim.calls import CallLog
from bnw.sim.world import NETWORK, World
from bnw.sync.protocol import SYNC_PROTOCOL
from bnw.transport.interface import PeerId, Stream, Verdict
from bnw.wire.errors import BnwError

REDIAL: Final = 5.0


async def be_silent(world: World, name: str, addresses: Sequence[str], log: CallLog) -> None:
    """Until cancelled."""

    async def swallow(stream: Stream) -> None:
        log.attacks += 1
        await anyio.sleep_forever()

    async def judge(peer: PeerId, data: bytes) -> Verdict:
        log.attacks += 1
        return Verdict.IGNORE

    async def handle(peer: PeerId, data: bytes) -> None:
        """Nothing is accepted, so nothing comes here."""

    async with world.network.endpoint(name) as endpoint:
        for protocol in (SYNC_PROTOCOL, BLOB_PROTOCOL, DELIVER_PROTOCOL):
            endpoint.serve(protocol, swallow)
        await endpoint.subscribe(catalog_topic(NETWORK), judge, handle)
        while True:
            for address in addresses:
                try:
                    await endpoint.dial(address)
                except BnwError as error:
                    world.record(name, "dial", error.code)
            await anyio.sleep(REDIAL)
