"""Who may read an inbox scope, and what everybody else sees: an empty one, whether there is an inbox or not."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
from sync_world import ALICE, BOB, NOW, Side, World, cancellation, connect, delegations, open_world, raw_session

from bnw.identity.keys import SigningKey
from bnw.objects.admission import check_inbox_object
from bnw.objects.catalog import IdentityRecord, Mailbox, PublicInboxKey
from bnw.objects.signed import SignedObject, sign_object
from bnw.store.memory import MemoryStore
from bnw.store.scopes import inbox_scope
from bnw.sync.checking import verify_here
from bnw.sync.inbox_access import InboxReader, reader_statement
from bnw.sync.negentropy.index import BlockedIndex
from bnw.sync.negentropy.reconciler import Initiator
from bnw.sync.protocol import MAX_NEGENTROPY
from bnw.sync.puller import Puller
from bnw.sync.scope_index import ScopeIndex
from bnw.transport.interface import PeerId
from bnw.wire.limits import DAY

pytestmark = pytest.mark.anyio

BOBS = inbox_scope(BOB.identity)
STRANGER = SigningKey(b"s" * 32)
NOBODYS = inbox_scope(SigningKey(b"n" * 32).identity)
MAIL = [cancellation(number) for number in range(1, 4)]
START = Initiator(BlockedIndex(), frame_limit=MAX_NEGENTROPY, max_message=MAX_NEGENTROPY).start()


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with open_world() as world:
        yield world


def reading(side: Side, key: SigningKey, scope: str) -> Puller:
    return Puller(
        side.transport,
        MemoryStore(),
        side.environment,
        ScopeIndex(side.store, scope),
        check=check_inbox_object,
        verify=verify_here,
        on_news=side.news.append,
        reader=InboxReader(key, side.peer),
    )


def naming(*mailboxes: str) -> SignedObject:
    """Bob's record, with these mailboxes."""
    body = IdentityRecord(
        created=NOW - 1,
        expires=NOW + DAY,
        inbox_keys=(PublicInboxKey(key=bytes(31) + b"\x01", not_after=NOW + DAY, not_before=NOW - DAY),),
        mailboxes=tuple(Mailbox(endpoints=(), peer=peer) for peer in mailboxes),
        sequence=1,
    )
    return sign_object(body, BOB)


async def transcript(
    side: Side, other: str, scope: str, key: SigningKey, changes: Mapping[str, Any] = {}
) -> list[dict[str, Any]]:
    """All that a reader is told who asks for everything, but for the nonce."""
    async with raw_session(side, other) as messages:
        await messages.send({"type": "open", "version": 1, "scope": scope, "message": START})
        challenge = await messages.receive()
        assert challenge is not None and challenge.keys() == {"type", "nonce"}
        said = {"reader": side.peer, "server": PeerId(other), "scope": scope, "nonce": challenge["nonce"], **changes}
        await messages.send({"type": "proof", "signature": key.sign(reader_statement(**said))})
        answers = [await messages.receive()]
        await messages.send({"type": "want", "ids": [mail.id for mail in MAIL]})
        answers.append(await messages.receive())
        return [answer or {} for answer in answers]


async def test_the_owner_reads_everything_in_its_inbox(world: World) -> None:
    async with world.side("bob") as bob, world.side("box", MAIL):
        await connect(bob, "box")
        report = await reading(bob, BOB, BOBS).pull(PeerId("box"))
        assert (report.news, report.is_complete) == (3, True)
        assert {obj.id for obj in bob.news} == {obj.id for obj in MAIL}


async def test_a_mailbox_that_the_owner_has_named_reads_it_too(world: World) -> None:
    async with world.side("second") as second, world.side("box", [*MAIL, naming("second")]):
        await connect(second, "box")
        assert (await reading(second, STRANGER, BOBS).pull(PeerId("box"))).news == 3


async def test_a_mailbox_that_is_named_no_more_reads_nothing(world: World) -> None:
    async with world.side("second") as second, world.side("box", [*MAIL, naming("third")]):
        await connect(second, "box")
        report = await reading(second, STRANGER, BOBS).pull(PeerId("box"))
        assert (report.news, report.asked, report.is_complete) == (0, 0, True)


async def test_forbidden_absent_and_empty_look_the_same_byte_for_byte(world: World) -> None:
    async with world.side("reader") as reader, world.side("full", MAIL), world.side("empty"):
        forbidden = await transcript(reader, "full", BOBS, STRANGER)
        assert forbidden == await transcript(reader, "full", NOBODYS, STRANGER)  # absent
        assert forbidden == await transcript(reader, "empty", BOBS, BOB)  # empty, to its owner
        assert forbidden == await transcript(reader, "empty", BOBS, STRANGER)
        assert forbidden[1] == {"type": "objects", "more": False, "objects": []}
        allowed = await transcript(reader, "full", BOBS, BOB)
        assert [len(answer["objects"]) for answer in allowed[1:]] == [3]


@pytest.mark.parametrize(
    "replayed",
    [
        {"nonce": bytes(32)},
        {"reader": PeerId("somebody else")},
        {"server": PeerId("another")},
        {"scope": inbox_scope(ALICE.identity)},
    ],
    ids=["another nonce", "another reader", "another server", "another scope"],
)
async def test_a_proof_for_anything_else_than_this_very_session_reads_nothing(
    world: World, replayed: dict[str, Any]
) -> None:
    async with world.side("reader") as reader, world.side("full", MAIL):
        assert (await transcript(reader, "full", BOBS, BOB, replayed))[1]["objects"] == []
        assert len((await transcript(reader, "full", BOBS, BOB))[1]["objects"]) == 3


async def test_each_challenge_has_a_nonce_of_its_own(world: World) -> None:
    async with world.side("reader") as reader, world.side("full", MAIL):
        nonces = set()
        for _ in range(5):
            async with raw_session(reader, "full") as messages:
                await messages.send({"type": "open", "version": 1, "scope": BOBS, "message": START})
                nonces.add((await messages.receive() or {})["nonce"])
        assert len(nonces) == 5


async def test_objects_of_another_scope_are_not_had_through_ones_own_inbox(world: World) -> None:
    async with world.side("alice") as alice, world.side("box", [*MAIL, *delegations(1)]):
        assert (await transcript(alice, "box", inbox_scope(ALICE.identity), ALICE))[1]["objects"] == []


async def test_a_signature_of_a_reader_can_be_mistaken_for_no_objects(world: World) -> None:
    statement = reader_statement(reader=PeerId("a"), server=PeerId("b"), scope=BOBS, nonce=bytes(32))
    assert statement.startswith(bytes([0x85, 0x60 + len("bnw/1 inbox-reader")]) + b"bnw/1 inbox-reader")
