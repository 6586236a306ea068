"""Access records (design section 8): what they say, and that only their recipient can open them."""

from __future__ import annotations

import cbor2
import cddl
from blake3 import blake3
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from golden_vectors import Vector, from_json, golden, refused
from nacl.bindings import crypto_aead_xchacha20poly1305_ietf_decrypt

from bnw.identity.inbox_keys import InboxKey
from bnw.identity.keys import IdentityId
from bnw.inbox.access import (
    binding_of,
    decode_access_record,
    encode_access_record,
    open_access_record,
    seal_access_record,
)
from bnw.objects.fields import write_fields
from bnw.objects.mail import ACCESS_RECORD_SIZE, SEALED_ACCESS_RECORD_SIZE
from bnw.wire.content_id import ContentId
from bnw.wire.limits import KIB


@golden("access-records.json", "accepted")
def test_a_record_is_sealed_for_its_recipient_as_the_page_says(vector: Vector) -> None:
    encoded, sealed = vector.bytes_of("encoded"), vector.bytes_of("sealed")
    sender, recipient = (IdentityId(vector.bytes_of(field)) for field in ("sender", "recipient"))
    private, public = vector.bytes_of("inbox_private"), vector.bytes_of("inbox_key")
    recipients = tuple(IdentityId(bytes.fromhex(each)) for each in vector["recipients"])
    chunks = tuple(ContentId(bytes.fromhex(each)) for each in vector["chunks"])

    record = decode_access_record(encoded)
    assert write_fields(record) == from_json(vector["record"])
    assert encode_access_record(record) == encoded
    assert cddl.accepts("access-record", encoded)
    assert InboxKey(private, 1, 2).public == public
    assert recipient in recipients

    binding = ["bnw/1 payload", sender, list(recipients), list(chunks)]
    assert record.binding == binding_of(sender, recipients, chunks) == blake3(cbor2.dumps(binding)).digest()
    assert cddl.accepts("payload-binding", cbor2.dumps(binding))

    assert sealed == seal_access_record(
        record, ephemeral=vector.bytes_of("ephemeral"), inbox_key=public, sender=sender, recipient=recipient
    )
    opened = open_access_record(sealed, private=private, inbox_key=public, sender=sender, recipient=recipient)
    assert opened == record
    assert len(sealed) == SEALED_ACCESS_RECORD_SIZE
    assert cddl.accepts("sealed-access-record", cbor2.dumps(sealed))

    # Opened once more with another X25519 and the pieces put together anew.
    shared = X25519PrivateKey.from_private_bytes(private).exchange(X25519PublicKey.from_public_bytes(sealed[:32]))
    key = blake3(sealed[:32] + public + shared, derive_key_context="bnw/1 access record sealing key").digest()
    plain = crypto_aead_xchacha20poly1305_ietf_decrypt(sealed[32:], sender + recipient, bytes(24), key)
    assert plain == (len(encoded).to_bytes(2) + encoded).ljust(640, b"\0")


@golden("access-records.json", "refused_records")
def test_another_record_is_refused(vector: Vector) -> None:
    with refused(vector):
        decode_access_record(vector.bytes_of("hex"))
    assert cddl.accepts("access-record", vector.bytes_of("hex")) == (vector["cddl"] == "accepts")


@golden("access-records.json", "refused_sealed")
def test_what_is_sealed_otherwise_does_not_open(vector: Vector) -> None:
    with refused(vector):
        open_access_record(
            vector.bytes_of("hex"),
            private=vector.bytes_of("inbox_private"),
            inbox_key=vector.bytes_of("inbox_key"),
            sender=IdentityId(vector.bytes_of("sender")),
            recipient=IdentityId(vector.bytes_of("recipient")),
        )


def test_all_records_have_one_size_and_the_largest_fits() -> None:
    assert (ACCESS_RECORD_SIZE, SEALED_ACCESS_RECORD_SIZE) == (640, 688)
    # 255 bytes of name and 127 of media type are the most that a golden record has; a public one is held to 1 KiB.
    assert ACCESS_RECORD_SIZE < KIB
