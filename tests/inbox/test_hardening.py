"""What a sender, a carrier or a source can do to a payload, and how each is noticed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from payload_parts import (
    ALICE,
    BOB,
    CAROL,
    MALLORY,
    NOW,
    Party,
    SeededEnvironment,
    body_of,
    forged,
    keys_of,
    opened,
    put_all,
    some_bytes,
)

from bnw.inbox.access import AccessRecord, binding_of, encode_access_record, seal_access_record
from bnw.inbox.chunks import carried_size, seal_chunk
from bnw.inbox.payload import CarriedPayload, Payload, open_payload, publish_payload, seal_payload
from bnw.objects.envelope import sign_envelope
from bnw.objects.mail import ACCESS_RECORD_SIZE, SEALED_ACCESS_RECORD_SIZE, PayloadManifest, SealedAccess
from bnw.objects.signed import SignedObject, sign_object, verify_object
from bnw.sim.run import run_virtual
from bnw.store.memory import MemoryStore
from bnw.wire.content_id import ContentId, content_id
from bnw.wire.errors import InvalidError, LocalError
from bnw.wire.limits import DAY, MAX_FILE_NAME, MAX_MEDIA_TYPE, MAX_PAYLOAD, MAX_PAYLOAD_CHUNKS, MIB, PAYLOAD_CHUNK

DATA = some_bytes(3 * MIB - 100)
KEY = bytes(range(32))


def sealed(data: bytes = DATA, *recipients: Party) -> CarriedPayload:
    return seal_payload(
        Payload(data, "application/json", "secret plan.json"),
        sender=ALICE.key,
        recipients=keys_of(*(recipients or (ALICE, BOB))),
        environment=SeededEnvironment(),
    )


def code_of(call: Callable[[], object]) -> str:
    with pytest.raises(InvalidError) as caught:
        call()
    return caught.value.code


def opening_fails(manifest: SignedObject, chunks: Sequence[bytes], reader: Party = BOB) -> str:
    """The code with which opening as a stream fails, which is that of opening in memory."""

    async def act() -> str:
        store = MemoryStore()
        await put_all(store, chunks)
        with pytest.raises(InvalidError) as caught:
            await opened(store, manifest, reader)
        return caught.value.code

    code = run_virtual(1, act)
    assert code == code_of(lambda: open_payload(manifest, reader.read(manifest), chunks))
    return code


class Forger:
    """A sender who knows the format and breaks one rule. Signs as Alice, seals for Bob."""

    def __init__(self, data: bytes = DATA) -> None:
        self.data = data
        self.pieces = [data[start : start + PAYLOAD_CHUNK] for start in range(0, len(data), PAYLOAD_CHUNK)]
        padded = carried_size(len(data), sealed=True) - 16 * len(self.pieces)
        self.pieces[-1] = self.pieces[-1].ljust(padded - PAYLOAD_CHUNK * (len(self.pieces) - 1), b"\0")
        self.record: dict[str, object] = {"hash": content_id(data), "size": len(data)}

    def chunks(self) -> list[bytes]:
        last = len(self.pieces) - 1
        return [seal_chunk(piece, KEY, n, is_last=n == last) for n, piece in enumerate(self.pieces)]

    def sign(self, chunks: Sequence[bytes], *, binding: bytes | None = None) -> SignedObject:
        ids = tuple(content_id(chunk) for chunk in chunks)
        facts: dict[str, object] = {
            "binding": binding or binding_of(ALICE.identity, (BOB.identity,), ids),
            "key": KEY,
            "media_type": "a/b",
            "name": None,
            **self.record,
        }
        access = seal_access_record(
            AccessRecord(**facts),  # type: ignore[arg-type]  # of the right types, and wrong on purpose
            ephemeral=bytes(31) + b"e",
            inbox_key=BOB.inbox_key.public,
            sender=ALICE.identity,
            recipient=BOB.identity,
        )
        body = PayloadManifest(
            created=NOW,
            expires=NOW + DAY,
            access=(SealedAccess(BOB.inbox_key.public, access),),
            chunks=ids,
            public=None,
            recipients=(BOB.identity,),
            size=sum(map(len, chunks)),
        )
        return sign_object(body, ALICE.key)


def test_a_forger_who_breaks_no_rule_is_believed() -> None:
    forger = Forger()
    chunks = forger.chunks()
    manifest = forger.sign(chunks)
    assert open_payload(manifest, BOB.read(manifest), chunks).data == DATA


class TestChunks:
    """The sender, or somebody with its key, signs a manifest whose chunks are not in order."""

    def test_reordered(self) -> None:
        chunks = Forger().chunks()
        chunks[0], chunks[1] = chunks[1], chunks[0]
        assert opening_fails(Forger().sign(chunks), chunks) == "chunk"

    def test_duplicated(self) -> None:
        chunks = Forger().chunks()
        chunks[1] = chunks[0]
        assert opening_fails(Forger().sign(chunks), chunks) == "chunk"

    def test_one_duplicated_at_the_end(self) -> None:
        forger = Forger()
        chunks = forger.chunks()
        chunks.insert(0, chunks[0])
        forger.record["size"] = len(DATA) + PAYLOAD_CHUNK
        assert opening_fails(forger.sign(chunks), chunks) == "chunk"

    def test_dropped_in_the_middle(self) -> None:
        forger = Forger()
        chunks = forger.chunks()
        del chunks[1]
        forger.record["size"] = len(DATA) - PAYLOAD_CHUNK
        assert opening_fails(forger.sign(chunks), chunks) == "chunk"

    def test_truncated_at_a_boundary(self) -> None:
        """Two of three chunks, with a size to match: the second does not say that it is the last."""
        forger = Forger()
        chunks = forger.chunks()[:2]
        forger.record.update(size=2 * MIB, hash=content_id(DATA[: 2 * MIB]))
        assert opening_fails(forger.sign(chunks), chunks) == "chunk"

    def test_truncated_within_the_last_chunk(self) -> None:
        forger = Forger()
        chunks = forger.chunks()
        chunks[2] = chunks[2][:-1]
        manifest = forger.sign(chunks)
        assert code_of(lambda: BOB.read(manifest)) == "payload-size"

    def test_shorter_than_the_manifest_says(self) -> None:
        """Fetching would not even take it, but a store may have it from somewhere."""
        forger = Forger()
        forger.pieces[1] = forger.pieces[1][: -MIB // 2]
        chunks = forger.chunks()
        manifest = forged(forger.sign(chunks), ALICE, size=carried_size(len(DATA), sealed=True))
        assert opening_fails(manifest, chunks) == "payload-size"

    def test_of_another_payload(self) -> None:
        chunks = Forger().chunks()
        chunks[1] = seal_chunk(bytes(PAYLOAD_CHUNK), bytes(32), 1, is_last=False)
        assert opening_fails(Forger().sign(chunks), chunks) == "chunk"

    def test_with_one_wrong_bit(self) -> None:
        chunks = Forger().chunks()
        chunks[1] = bytes([chunks[1][0] ^ 1]) + chunks[1][1:]
        assert opening_fails(Forger().sign(chunks), chunks) == "chunk"

    def test_others_than_the_manifest_says(self) -> None:
        carried = sealed()
        wrong = [*carried.chunks[:2], bytes(len(carried.chunks[2]))]
        record = BOB.read(carried.manifest)
        assert code_of(lambda: open_payload(carried.manifest, record, wrong)) == "chunk"
        assert code_of(lambda: open_payload(carried.manifest, record, carried.chunks[:2])) == "chunk"

    def test_one_that_is_not_here_yet(self) -> None:
        carried = sealed()

        async def act() -> None:
            store = MemoryStore()
            await put_all(store, carried.chunks[:2])
            with pytest.raises(LocalError) as caught:
                await opened(store, carried.manifest, BOB)
            assert caught.value.code == "chunk-missing"

        run_virtual(1, act)


class TestDeclarations:
    """The sender's access record says something that is not so."""

    @pytest.mark.parametrize("size", [0, len(DATA) - 100_000, len(DATA) + 100_000, MAX_PAYLOAD])
    def test_a_size_that_needs_other_chunks_is_refused_before_any_is_fetched(self, size: int) -> None:
        forger = Forger()
        forger.record["size"] = size
        manifest = forger.sign(forger.chunks())
        assert code_of(lambda: BOB.read(manifest)) == "payload-size"

    def test_fewer_bytes_declared_than_sent_shows_in_the_padding(self) -> None:
        forger = Forger()
        forger.record["size"] = len(DATA) - 1
        chunks = forger.chunks()
        assert opening_fails(forger.sign(chunks), chunks) == "payload-padding"

    def test_more_bytes_declared_than_sent_shows_in_the_hash(self) -> None:
        forger = Forger()
        forger.record["size"] = len(DATA) + 1
        chunks = forger.chunks()
        assert opening_fails(forger.sign(chunks), chunks) == "payload-hash"

    def test_padding_that_holds_something(self) -> None:
        forger = Forger()
        forger.pieces[-1] = forger.pieces[-1][:-1] + b"\1"
        chunks = forger.chunks()
        assert opening_fails(forger.sign(chunks), chunks) == "payload-padding"

    def test_a_wrong_hash(self) -> None:
        forger = Forger()
        forger.record["hash"] = bytes(32)
        chunks = forger.chunks()
        assert opening_fails(forger.sign(chunks), chunks) == "payload-hash"

    def test_a_wrong_key(self) -> None:
        forger = Forger()
        forger.record["key"] = bytes(32)
        chunks = forger.chunks()
        assert opening_fails(forger.sign(chunks), chunks) == "chunk"

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("name", "a\0b"),
            ("name", "x" * (MAX_FILE_NAME + 1)),
            ("name", ""),
            ("media_type", "text"),
            ("size", -1),
            ("size", MAX_PAYLOAD + 1),
        ],
    )
    def test_a_record_that_breaks_a_rule(self, field: str, value: object) -> None:
        forger = Forger()
        forger.record[field] = value
        manifest = forger.sign(forger.chunks())
        assert code_of(lambda: BOB.read(manifest)) == "field"


class TestRecipients:
    def sign(self, recipients: Sequence[object], access: int) -> SignedObject:
        """A manifest signed without the checks of `sign_object`, as others might."""
        reader = body_of(sealed().manifest)
        record = SealedAccess(bytes(32), bytes(SEALED_ACCESS_RECORD_SIZE))
        body = replace(reader, recipients=tuple(recipients), access=(record,) * access)  # type: ignore[arg-type]  # a wrong form is what is tested
        return verify_object(sign_envelope(body.KIND, body.encode(), ALICE.key))

    def test_none(self) -> None:
        assert code_of(lambda: self.sign([], 0)) == "field"

    def test_one_is_a_payload_but_not_one_of_a_call(self) -> None:
        carried = sealed(b"x", BOB)
        assert verify_object(carried.manifest.data) == carried.manifest
        assert set(body_of(carried.manifest).recipients) != {ALICE.identity, BOB.identity}

    def test_sixteen(self) -> None:
        everyone = [Party(f"party {number}") for number in range(16)]
        carried = sealed(b"x", *everyone)
        manifest = verify_object(carried.manifest.data)
        assert all(open_payload(manifest, party.read(manifest), carried.chunks).data == b"x" for party in everyone)

    def test_seventeen(self) -> None:
        everyone = sorted(Party(f"party {number}").identity for number in range(17))
        assert code_of(lambda: self.sign(everyone, 17)) == "field"
        assert code_of(lambda: sealed(b"x", *(Party(f"party {n}") for n in range(17)))) == "recipients"

    def test_duplicate(self) -> None:
        assert code_of(lambda: self.sign([ALICE.identity, ALICE.identity], 2)) == "field"
        assert body_of(
            publish_payload(
                Payload(b"x", "a/b"),
                sender=ALICE.key,
                recipients=[BOB.identity, BOB.identity],
                environment=SeededEnvironment(),
            ).manifest
        ).recipients == (BOB.identity,)

    def test_not_in_order(self) -> None:
        assert code_of(lambda: self.sign(sorted([ALICE.identity, BOB.identity], reverse=True), 2)) == "field"

    @pytest.mark.parametrize("access", [0, 1, 3])
    def test_more_or_fewer_than_access_records(self, access: int) -> None:
        assert code_of(lambda: self.sign(sorted([ALICE.identity, BOB.identity]), access)) == "access-records"

    def test_somebody_else_cannot_read_it(self) -> None:
        manifest = sealed().manifest
        assert code_of(lambda: CAROL.read(manifest)) == "not-a-recipient"


class TestAccessRecords:
    def test_lifted_into_a_manifest_of_somebody_else(self) -> None:
        """Mallory signs Alice's records and chunks as if they were from Mallory."""
        manifest = forged(sealed().manifest, MALLORY)
        assert code_of(lambda: BOB.read(manifest)) == "access-record"

    def test_lifted_into_a_manifest_with_other_chunks(self) -> None:
        chunks = tuple(reversed(body_of(sealed().manifest).chunks[:2])) + body_of(sealed().manifest).chunks[2:]
        manifest = forged(sealed().manifest, ALICE, chunks=chunks)
        assert code_of(lambda: BOB.read(manifest)) == "access-record"

    def test_lifted_into_a_manifest_with_other_recipients(self) -> None:
        body = body_of(sealed().manifest)
        access = dict(zip(body.recipients, body.access, strict=True))
        recipients = tuple(sorted((BOB.identity, CAROL.identity)))
        unread = SealedAccess(bytes(32), bytes(SEALED_ACCESS_RECORD_SIZE))
        manifest = forged(
            sealed().manifest, ALICE, recipients=recipients, access=tuple(access.get(who, unread) for who in recipients)
        )
        assert code_of(lambda: BOB.read(manifest)) == "access-record"

    def test_swapped_between_recipients(self) -> None:
        body = body_of(sealed().manifest)
        manifest = forged(sealed().manifest, ALICE, access=tuple(reversed(body.access)))
        assert code_of(lambda: BOB.read(manifest)) == "inbox-key-gone"
        keyed = tuple(
            replace(record, inbox_key=own.inbox_key)
            for record, own in zip(reversed(body.access), body.access, strict=True)
        )
        manifest = forged(sealed().manifest, ALICE, access=keyed)
        assert code_of(lambda: BOB.read(manifest)) == "access-record"

    def test_bound_to_another_payload_by_its_own_sender(self) -> None:
        forger = Forger()
        manifest = forger.sign(forger.chunks(), binding=bytes(32))
        assert code_of(lambda: BOB.read(manifest)) == "access-record"

    def test_of_a_public_payload_lifted_into_a_sealed_one(self) -> None:
        forger = Forger()
        forger.record["key"] = None
        manifest = forger.sign(forger.chunks())
        assert code_of(lambda: BOB.read(manifest)) == "access-record"

    def test_of_a_sealed_payload_published(self) -> None:
        body = body_of(sealed(b"x", BOB).manifest)
        record = encode_access_record(replace(BOB.read(sealed(b"x", BOB).manifest)))
        manifest = forged(sealed(b"x", BOB).manifest, ALICE, access=(), public=record, size=body.size)
        assert code_of(lambda: BOB.read(manifest)) == "access-record"

    def test_all_have_the_same_size_whatever_they_say(self) -> None:
        sizes = set()
        for name in (None, "x", "é" * 127, "x" * MAX_FILE_NAME):
            for media_type in ("a/b", f"a/{'b' * (MAX_MEDIA_TYPE - 2)}"):
                for size in (0, 10, 4000):
                    payload = Payload(bytes(size), media_type, name)
                    carried = seal_payload(
                        payload, sender=ALICE.key, recipients=keys_of(BOB), environment=SeededEnvironment()
                    )
                    assert open_payload(carried.manifest, BOB.read(carried.manifest), carried.chunks) == payload
                    sizes.add((len(carried.manifest.data), len(body_of(carried.manifest).access[0].sealed)))
        assert len(sizes) == 1
        assert sizes.pop()[1] == 32 + ACCESS_RECORD_SIZE + 16


def test_the_largest_manifest_fits_a_signed_object() -> None:
    """1,064 chunks and 16 recipients: why chunks have a mebibyte."""
    everyone = [Party(f"party {number}") for number in range(16)]
    record = SealedAccess(bytes(32), bytes(SEALED_ACCESS_RECORD_SIZE))
    body = PayloadManifest(
        created=NOW,
        expires=NOW + DAY,
        access=(record,) * 16,
        chunks=(ContentId(bytes(32)),) * MAX_PAYLOAD_CHUNKS,
        public=None,
        recipients=tuple(sorted(party.identity for party in everyone)),
        size=MAX_PAYLOAD_CHUNKS * (PAYLOAD_CHUNK + 16),
    )
    assert len(sign_object(body, ALICE.key).data) < 50_000


def test_nothing_of_the_plain_side_stands_in_what_carriers_hold() -> None:
    data = some_bytes(123_456)
    payload = Payload(data, "application/x-very-telling", "a telling name.json")
    carried = seal_payload(payload, sender=ALICE.key, recipients=keys_of(ALICE, BOB), environment=SeededEnvironment())

    async def act() -> bytes:
        store = MemoryStore()
        await put_all(store, carried.chunks)
        await store.put_objects([carried.manifest], now=NOW)
        return b"\xff\xff".join(store.all_bytes())

    held = run_virtual(1, act)
    telling = [b"telling", content_id(data), data[:16], data[1000:1016], data[-16:]]
    telling += [len(data).to_bytes(4), len(data).to_bytes(4, "little"), str(len(data)).encode()]
    assert [needle for needle in telling if needle in held] == []
    assert carried.manifest.id in {content_id(data) for data in [carried.manifest.data]}
    assert body_of(carried.manifest).chunks[0] in held, "the search does find what is there"
