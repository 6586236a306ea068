"""Vectors of what goes over streams: the messages of `/bnw/blob/1` and `/bnw/deliver/1`."""

from __future__ import annotations

from bnw.wire.cbor import Value, encode
from vector_cases.forms import Json, an_id, to_json

BLOB, DELIVER = "/bnw/blob/1", "/bnw/deliver/1"
ID = an_id("blob")


def messages() -> Json:
    accepted: list[tuple[str, str, dict[str, Value]]] = [
        ("blob-get", BLOB, {"type": "get", "id": ID}),
        ("blob-follows", BLOB, {"type": "blob", "size": 16_777_216}),
        ("blob-follows", BLOB, {"type": "blob", "size": 0}),
        ("blob-absent", BLOB, {"type": "absent"}),
        ("blob-busy", BLOB, {"type": "busy"}),
        ("delivery", DELIVER, {"type": "deliver", "objects": [b"\xd2", b"any bytes: objects are judged on their own"]}),
        ("delivery", DELIVER, {"type": "deliver", "objects": [b"x"] * 16}),
        ("parcel", DELIVER, {"type": "parcel", "blobs": [b"a chunk"], "objects": [b"\xd2"]}),
        ("knock", DELIVER, {"type": "knock", "recipient": an_id("recipient")}),
        ("delivered", DELIVER, {"type": "delivered"}),
        ("delivery-refused", DELIVER, {"type": "refused", "code": "not-here"}),
    ]
    refused: list[tuple[str, str, dict[str, Value], str, str]] = [
        ("blob-get", BLOB, {"type": "get", "id": ID[:-1]}, "field", "an id has 32 bytes"),
        ("blob-get", BLOB, {"type": "get", "id": ID.hex()}, "field", "an id is bytes, not their text form"),
        ("blob-get", BLOB, {"type": "get"}, "missing-field", "it does not say which blob"),
        ("blob-get", BLOB, {"type": "get", "id": ID, "offset": 5}, "unknown-field", "there are no parts of blobs"),
        ("blob-get", BLOB, {"type": "GET", "id": ID}, "message", "types are lowercase"),
        ("blob-get", BLOB, {"id": ID}, "message", "a message has a type"),
        ("blob-get", BLOB, {"type": 1, "id": ID}, "message", "a type is text"),
        ("blob-follows", BLOB, {"type": "blob", "size": 16_777_217}, "field", "a blob has at most 16 MiB"),
        ("blob-follows", BLOB, {"type": "blob", "size": -1}, "field", "a size is not negative"),
        ("blob-absent", BLOB, {"type": "absent", "reason": "no"}, "unknown-field", "there is no reason"),
        ("blob-busy", BLOB, {"type": "busy", "until": 1}, "unknown-field", "there is no time"),
        ("delivery", DELIVER, {"type": "deliver", "objects": []}, "field", "it delivers nothing"),
        ("delivery", DELIVER, {"type": "deliver", "objects": [b"x"] * 17}, "field", "at most 16 objects at once"),
        ("delivery", DELIVER, {"type": "deliver", "objects": ["text"]}, "field", "objects are bytes"),
        ("parcel", DELIVER, {"type": "parcel", "blobs": [], "objects": [b"x"]}, "field", "a delivery has no blobs"),
        ("parcel", DELIVER, {"type": "parcel", "blobs": [b""], "objects": [b"x"]}, "field", "a blob in it has bytes"),
        ("parcel", DELIVER, {"type": "parcel", "blobs": [b"x"], "objects": []}, "field", "it delivers nothing"),
        ("parcel", DELIVER, {"type": "parcel", "blobs": [b"x"]}, "missing-field", "it does not say for what"),
        ("knock", DELIVER, {"type": "knock"}, "missing-field", "it does not say for whom"),
        ("knock", DELIVER, {"type": "knock", "recipient": "did:key:z6Mk"}, "field", "an identity is bytes"),
        ("knock", DELIVER, {"type": "knock", "recipient": ID, "objects": []}, "unknown-field", "it delivers nothing"),
        ("delivered", DELIVER, {"type": "delivered", "objects": 2}, "unknown-field", "it is all of them or none"),
        ("delivery-refused", DELIVER, {"type": "refused", "code": "Not Here"}, "name", "codes are names"),
        ("delivery-refused", DELIVER, {"type": "refused", "code": None}, "field", "this field may not be null"),
    ]
    return {
        "about": "Messages between peers. `rule` is the rule of protocols.cddl; the bytes travel in a frame.",
        "accepted": [
            {"rule": rule, "protocol": protocol, "message": to_json(message), "hex": encode(message).hex()}
            for rule, protocol, message in accepted
        ],
        "refused": [
            {"rule": rule, "protocol": protocol, "hex": encode(message).hex(), "code": code, "reason": reason}
            for rule, protocol, message, code, reason in refused
        ],
    }
