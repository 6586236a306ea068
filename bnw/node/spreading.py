"""Asks peers whether they hold what this node has said, for a node that wants to end."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import anyio

from bnw.blobs.protocol import BLOB_PROTOCOL, BlobAbsent, BlobBusy, BlobFollows, GetBlob
from bnw.identity.keys import IdentityId
from bnw.invoke.resolve import Catalog
from bnw.objects.authority import Delegation, Revocation
from bnw.objects.catalog import CapabilityManifest, IdentityRecord, ProviderOffer, Withdrawal
from bnw.objects.message import read_message
from bnw.transport.interface import PeerId, Transport
from bnw.transport.message_stream import MessageStream
from bnw.wire.content_id import ContentId
from bnw.wire.errors import InvalidError, RemoteError
from bnw.wire.limits import MAX_SIGNED_OBJECT, SECOND

logger = logging.getLogger(__name__)

SPREADING_PATIENCE = 10.0
"""Seconds that a node waits for its peers when it is asked to, and when it ends."""
LEAVING_PATIENCE = 3.0
LEAVING_LOOK_BACK = 10 * SECOND
"""What is older has long reached the peers, or will never."""
SPOKEN = (IdentityRecord, CapabilityManifest, Withdrawal, ProviderOffer, Delegation, Revocation)
"""Kinds of catalog objects that a node says in its identity's name."""
ASK_PERIOD = 0.1
"""Seconds between two askings for what has not arrived yet."""


async def said_since(catalog: Catalog, identity: IdentityId, time: int) -> list[ContentId]:
    """What `identity` has said in the catalog since a time in milliseconds."""
    objects = [obj for kind in SPOKEN for obj in await catalog.all(kind, signer=identity)]
    return [obj.id for obj in objects if obj.body.created >= time]


async def peers_without(transport: Transport, objects: Sequence[ContentId], *, patience: float) -> tuple[PeerId, ...]:
    """Wait until every connected peer holds these catalog objects; those that do not after `patience` seconds.

    Catalog objects are blobs too, so the blob protocol tells.
    """
    without = {info.peer for info in transport.peers()} if objects else set()

    async def ask(peer: PeerId) -> None:
        try:
            await _wait_until_held(transport, peer, objects)
            without.discard(peer)
        except RemoteError as error:
            logger.info("cannot tell whether %s has what is new here: %s", peer, error)

    with anyio.move_on_after(patience):
        async with anyio.create_task_group() as group:
            for peer in sorted(without):
                group.start_soon(ask, peer)
    return tuple(sorted(without))


async def _wait_until_held(transport: Transport, peer: PeerId, objects: Sequence[ContentId]) -> None:
    async with MessageStream(await transport.open_stream(peer, BLOB_PROTOCOL)) as messages:
        try:
            for id in objects:
                while not await _holds(messages, id):  # noqa: ASYNC110 - only the peer knows when it does
                    await anyio.sleep(ASK_PERIOD)
        except InvalidError as error:
            raise error.from_peer(peer) from error


async def _holds(messages: MessageStream, id: ContentId) -> bool:
    await messages.send(GetBlob(id).to_wire())
    answer = read_message(await messages.receive(), BlobFollows, BlobAbsent, BlobBusy)
    if not isinstance(answer, BlobFollows):
        return False
    if answer.size > MAX_SIGNED_OBJECT:
        raise InvalidError("too-large", f"a signed object of {answer.size:,} bytes", place=id.hex())
    await messages.receive_exactly(answer.size)
    return True
