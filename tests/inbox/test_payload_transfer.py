"""A payload from sealing to opening over a simulated network, with a carrier in between."""

from __future__ import annotations

import pytest
from payload_parts import (
    ALICE,
    BOB,
    CAROL,
    NOW,
    Party,
    SeededEnvironment,
    body_of,
    keys_of,
    opened,
    outgoing,
    some_bytes,
)

from bnw.blobs.fetcher import BlobFetcher
from bnw.blobs.server import BlobServer
from bnw.inbox.chunks import carried_size
from bnw.inbox.sealing import seal_to_store
from bnw.inbox.transfer import fetch_payload, stored_chunks
from bnw.objects.catalog import Withdrawal
from bnw.objects.signed import SignedObject, sign_object
from bnw.sim import environment
from bnw.sim.run import run_virtual
from bnw.store.memory import MemoryStore
from bnw.transport.interface import PeerId
from bnw.transport.memory import Link, MemoryNetwork
from bnw.wire.content_id import content_id
from bnw.wire.errors import InvalidError
from bnw.wire.limits import CANCELLING_LIFETIME_MIN, MIB

DATA = some_bytes(5 * MIB + 1)
NAME = "a telling name.json"


async def sealed(store: MemoryStore, *recipients: Party) -> SignedObject:
    return await seal_to_store(
        outgoing(DATA, name=NAME),
        store,
        sender=ALICE.key,
        recipients=keys_of(ALICE, *recipients),
        environment=SeededEnvironment(),
    )


def test_a_carrier_fetches_and_serves_what_it_cannot_read_and_holds_nothing_of_the_plain_side() -> None:
    async def act() -> None:
        stores = {name: MemoryStore() for name in ("alice", "carrier", "bob")}
        manifest = await sealed(stores["alice"], BOB, CAROL)
        network = MemoryNetwork(environment.SeededEnvironment(1), link=Link(latency=0.01, bandwidth=5_000_000))
        async with network, network.endpoint("carrier") as carrier:
            BlobServer(carrier, stores["carrier"])
            async with network.endpoint("alice") as alice:
                BlobServer(alice, stores["alice"])
                await carrier.dial("mem:alice")
                await fetch_payload(BlobFetcher(carrier, stores["carrier"]), manifest)
                await stores["carrier"].put_objects([manifest], now=NOW)
            async with network.endpoint("bob") as bob:  # Alice is gone
                await bob.dial("mem:carrier")
                told: list[tuple[int, int]] = []
                await fetch_payload(
                    BlobFetcher(bob, stores["bob"]),
                    manifest,
                    prefer=[PeerId("carrier")],
                    on_progress=lambda done, total: told.append((done, total)),
                )
        for reader in (BOB, CAROL):
            assert await opened(stores["bob"], manifest, reader) == DATA
        size = carried_size(len(DATA), sealed=True)
        assert told[-1] == (size, size) == (body_of(manifest).size,) * 2
        held = b"\xff\xff".join(stores["carrier"].all_bytes())
        assert body_of(manifest).chunks[0] in held
        telling = [NAME.encode(), b"octet-stream", content_id(DATA), DATA[:16], DATA[MIB : MIB + 16], DATA[-16:]]
        telling += [len(DATA).to_bytes(4), len(DATA).to_bytes(4, "little"), str(len(DATA)).encode()]
        assert [needle for needle in telling if needle in held] == []

    run_virtual(1, act)


def test_the_same_manifest_delivered_twice_is_fetched_once() -> None:
    async def act() -> None:
        source, mine = MemoryStore(), MemoryStore()
        manifest = await sealed(source, BOB)
        async with (
            MemoryNetwork(environment.SeededEnvironment(1)) as network,
            network.endpoint("alice") as alice,
            network.endpoint("bob") as bob,
        ):
            BlobServer(alice, source)
            await bob.dial("mem:alice")
            fetcher = BlobFetcher(bob, mine)
            await fetch_payload(fetcher, manifest)
            network.disconnect("alice", "bob")
            await fetch_payload(fetcher, manifest)
        assert len(await stored_chunks(mine, manifest)) == len(body_of(manifest).chunks)

    run_virtual(1, act)


def test_something_else_than_a_payload_cannot_be_fetched_as_one() -> None:
    other = sign_object(Withdrawal(created=1, expires=1 + CANCELLING_LIFETIME_MIN, name="x", sequence=1), ALICE.key)

    async def act() -> None:
        async with (
            MemoryNetwork(environment.SeededEnvironment(1)) as network,
            network.endpoint("bob") as bob,
        ):
            with pytest.raises(InvalidError) as caught:
                await fetch_payload(BlobFetcher(bob, MemoryStore()), other)
        assert caught.value.code == "not-a-payload"

    run_virtual(1, act)
