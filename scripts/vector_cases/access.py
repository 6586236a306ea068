"""Vectors of access records: what is in one, and the sealed form of it for one recipient (design section 8)."""

from __future__ import annotations

from blake3 import blake3
from nacl.bindings import crypto_aead_xchacha20poly1305_ietf_encrypt, crypto_scalarmult, crypto_scalarmult_base

from bnw.inbox.access import AccessRecord, binding_of, encode_access_record, seal_access_record
from bnw.objects.fields import write_fields
from bnw.wire.cbor import Value, encode
from bnw.wire.content_id import content_id
from vector_cases.forms import PROVIDER, REQUESTER, STRANGER, Json, an_id, ascending, to_json
from vector_cases.kinds import PROVIDER_INBOX, REQUESTER_INBOX

EPHEMERAL = bytes(range(0x60, 0x80))
CHUNKS = (an_id("chunk 0"), an_id("chunk 1"))
RECIPIENTS = ascending(PROVIDER.identity, REQUESTER.identity)


def _record(**change: object) -> AccessRecord:
    fields: dict[str, object] = {
        "binding": binding_of(REQUESTER.identity, RECIPIENTS, CHUNKS),
        "hash": content_id(b"plaintext"),
        "key": bytes(range(0x80, 0xA0)),
        "media_type": "application/json",
        "name": "question.json",
        "size": 9,
    }
    return AccessRecord(**{**fields, **change})  # type: ignore[arg-type]  # fields of the record, by name


def _seal(record: AccessRecord) -> bytes:
    return seal_access_record(
        record,
        ephemeral=EPHEMERAL,
        inbox_key=PROVIDER_INBOX.public,
        sender=REQUESTER.identity,
        recipient=PROVIDER.identity,
    )


def access_records() -> Json:
    whole = _record()
    examples = [
        ("a record with everything", whole),
        ("a record without a name, of nothing", _record(name=None, size=0, hash=content_id(b""))),
        ("the largest record", _record(name="é" * 127 + "x", media_type="x/" + "y" * 125, size=2**30)),
    ]
    return {
        "about": "Access records from one sender to one recipient. `inbox_private` opens `sealed`; `ephemeral` is the "
        "private key that the sender drew for it. The binding is over the sender, `recipients` and `chunks`. All keys "
        "here are public by being here.",
        "accepted": [
            {
                "name": name,
                "record": to_json(write_fields(record)),
                "encoded": encode_access_record(record).hex(),
                "sender": REQUESTER.identity.hex(),
                "recipient": PROVIDER.identity.hex(),
                "recipients": [identity.hex() for identity in RECIPIENTS],
                "chunks": [chunk.hex() for chunk in CHUNKS],
                "inbox_private": PROVIDER_INBOX.private.hex(),
                "inbox_key": PROVIDER_INBOX.public.hex(),
                "ephemeral": EPHEMERAL.hex(),
                "sealed": _seal(record).hex(),
            }
            for name, record in examples
        ],
        "refused_records": [
            {"name": name, "hex": data.hex(), "code": code, "reason": reason, "cddl": "refuses"}
            for name, data, code, reason in _bad_records(whole)
        ],
        "refused_sealed": [
            {
                "name": name,
                "hex": sealed.hex(),
                "sender": sender.hex(),
                "recipient": recipient.hex(),
                "inbox_private": private.hex(),
                "inbox_key": public.hex(),
                "code": code,
                "reason": reason,
            }
            for name, sealed, sender, recipient, private, public, code, reason in _bad_sealed(whole)
        ],
    }


def _bad_records(record: AccessRecord) -> list[tuple[str, bytes, str, str]]:
    value = write_fields(record)

    def changed(**change: Value) -> bytes:
        return encode({**value, **change})

    return [
        ("a field more", changed(comment="x"), "unknown-field", "unknown fields are refused"),
        ("a field less", encode({k: v for k, v in value.items() if k != "hash"}), "missing-field", "there is no hash"),
        ("a key of 16 bytes", changed(key=bytes(16)), "field", "a payload key has 32 bytes"),
        ("a media type with a parameter", changed(media_type="text/plain; charset=utf-8"), "field", "no parameters"),
        ("an empty name", changed(name=""), "field", "no name is null"),
        ("a name with a line break", changed(name="a\nb"), "field", "names have no control characters"),
        ("a name of 256 bytes", changed(name="é" * 128), "field", "at most 255 bytes of UTF-8"),
        ("more than a payload can have", changed(size=2**30 + 1), "field", "at most 1 GiB"),
        ("a negative size", changed(size=-1), "field", "a size is not negative"),
        ("a hash of 31 bytes", changed(hash=bytes(31)), "field", "a content id has 32 bytes"),
    ]  # fmt: skip


def _bad_sealed(record: AccessRecord) -> list[tuple[str, bytes, bytes, bytes, bytes, bytes, str, str]]:
    sealed = _seal(record)
    sender, recipient = REQUESTER.identity, PROVIDER.identity
    private, public = PROVIDER_INBOX.private, PROVIDER_INBOX.public
    encoded = encode_access_record(record)
    code = "access-record"

    def padded(plain: bytes) -> bytes:
        """Seal any 640 bytes as if they were a padded record, under the key of the valid one."""
        return sealed[:32] + crypto_aead_xchacha20poly1305_ietf_encrypt(
            plain.ljust(640, b"\0"), sender + recipient, bytes(24), _key_of_sealed()
        )

    head = len(encoded).to_bytes(2)
    return [
        ("from another sender", sealed, STRANGER.identity, recipient, private, public, code,
         "the sender is authenticated: a record cannot be passed on as one's own"),
        ("to another recipient", sealed, sender, STRANGER.identity, private, public, code,
         "the recipient is authenticated"),
        ("with another inbox key", sealed, sender, recipient, REQUESTER_INBOX.private, REQUESTER_INBOX.public, code,
         "it was sealed to another key"),
        ("one bit of the tag", sealed[:-1] + bytes([sealed[-1] ^ 1]), sender, recipient, private, public, code,
         "it was changed on its way"),
        ("another ephemeral key", bytes([sealed[0] ^ 1]) + sealed[1:], sender, recipient, private, public, code,
         "it was changed on its way"),
        ("an ephemeral key of small order", bytes(32) + sealed[32:], sender, recipient, private, public, "inbox-key",
         "the shared secret would be zeros, which everybody knows"),
        ("padding that holds something", padded(head + encoded + b"\0\0\x01"), sender, recipient, private, public, code,
         "the padding is zeros"),
        ("a length beyond the end", padded(b"\xff\xff" + encoded), sender, recipient, private, public, code,
         "there are not that many bytes"),
        ("a length that is too short", padded((len(encoded) - 1).to_bytes(2) + encoded), sender, recipient, private,
         public, code, "the rest of the record would count as padding, and is not zeros"),
        ("no record", padded(b""), sender, recipient, private, public, "cbor", "there are zeros alone"),
    ]  # fmt: skip


def _key_of_sealed() -> bytes:
    """The key that the valid record is sealed with, put together from what docs/protocol.md section 12 says."""
    shared = crypto_scalarmult(EPHEMERAL, PROVIDER_INBOX.public)
    material = crypto_scalarmult_base(EPHEMERAL) + PROVIDER_INBOX.public + shared
    return blake3(material, derive_key_context="bnw/1 access record sealing key").digest()
