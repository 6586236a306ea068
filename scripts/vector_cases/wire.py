"""Vectors of the lowest layer: content ids, frames, and the shared alphabets."""

from __future__ import annotations

from bnw.wire.cbor import Value, encode
from bnw.wire.content_id import content_id
from bnw.wire.frames import encode_frame
from vector_cases.forms import Json, to_json


def content_ids() -> Json:
    # Inputs of the published BLAKE3 vectors are the bytes 0, 1, … 250, again and again.
    inputs = {f"{size:,} bytes of the BLAKE3 test vectors": bytes(i % 251 for i in range(size)) for size in SIZES}
    inputs["the six letters foobar"] = b"foobar"
    text = content_id(b"foobar").hex()
    refused = [
        ("upper case", text.upper(), "only lowercase digits are accepted"),
        ("one capital letter", text[:-1] + text[-1].upper(), "only lowercase digits are accepted"),
        ("63 digits", text[:-1], "a digit is missing"),
        ("65 digits", text + "0", "there is a digit too many"),
        ("nothing", "", "there are no digits at all"),
        ("a letter that is no digit", "g" + text[1:], "g is not a hexadecimal digit"),
        ("a prefix", "0x" + text[2:], "no prefix is accepted"),
        ("a space at the end", text[:-1] + " ", "white space is not a digit"),
        ("a line break at the end", text + "\n", "white space is not accepted around an id"),
        ("a fullwidth digit", "\uff11" + text[1:], "only ASCII digits are accepted"),
    ]
    return {
        "about": "Content ids: the BLAKE3 hash of the exact bytes, and its one text form.",
        "accepted": [
            {"name": name, "bytes": data.hex(), "id": content_id(data).hex()} for name, data in inputs.items()
        ],
        "refused": [
            {"name": name, "text": given, "code": "content-id", "reason": reason} for name, given, reason in refused
        ],
    }


SIZES = (0, 1, 64, 65, 1023, 1024, 1025)


def frames() -> Json:
    hello: dict[str, Value] = {"type": "hello", "to": "you"}
    empty: dict[str, Value] = {}
    one, two = encode_frame(hello), encode_frame(empty)
    exact = len(encode(hello))
    accepted = [
        ("one message", one, exact, [hello], True),
        ("an empty map", two, exact, [empty], True),
        ("two messages, one after the other", one + two, exact, [hello, empty], True),
        ("nothing yet", b"", exact, [], True),
        ("half a length", one[:2], exact, [], False),
        ("a length and nothing more", one[:4], exact, [], False),
        ("all but the last byte", one[:-1], exact, [], False),
        ("a message and the start of another", one + two[:3], exact, [hello], False),
    ]
    refused = [
        ("longer than allowed", one, exact - 1, "frame-too-large", "the message has one byte more than the limit"),
        ("only a length above the limit", b"\xff\xff\xff\xff", exact, "frame-too-large",
         "the length alone is enough to refuse it; nothing is buffered"),
        ("a frame of no bytes", bytes(4), exact, "cbor", "no bytes are no CBOR"),
        ("not a map", bytes([0, 0, 0, 1, 0x80]), exact, "cbor-type", "a message is a map"),
        ("bytes after the map", bytes([0, 0, 0, 2, 0xA0, 0x00]), exact, "cbor-not-deterministic",
         "the length covers more than the message"),
        ("a length that cuts the map short", bytes([0, 0, 0, 1, 0xA1]), exact, "cbor", "the map is not finished"),
        ("a floating-point number", bytes([0, 0, 0, 6, 0xA1, 0x61, 0x61, 0xF9, 0x3C, 0x00]), exact, "cbor-type",
         "what is not allowed in objects is not allowed in messages"),
    ]  # fmt: skip
    return {
        "about": "Frames: a length in four bytes, highest first, then a map in deterministic CBOR. `max_size` is the "
        "limit in bytes that the reader sets; `whole` says whether the stream may end after these bytes.",
        "accepted": [
            {
                "name": name,
                "hex": data.hex(),
                "max_size": limit,
                "messages": [to_json(message) for message in messages],
                "whole": whole,
            }
            for name, data, limit, messages, whole in accepted
        ],
        "refused": [
            {"name": name, "hex": data.hex(), "max_size": limit, "code": code, "reason": reason}
            for name, data, limit, code, reason in refused
        ],
    }


NAMES = (
    "a",
    "0",
    "finance/lookup",
    "tools/call",
    "a-b_c.d",
    "a/.",
    "a/-b",
    "x" * 64,
    "0/1/2/3",
    "a..b",
    "summarise.v2",
)
REFUSED_NAMES = (
    ("", "it is empty"),
    ("x" * 65, "it has more than 64 characters"),
    ("Lookup", "a capital letter"),
    ("tools//call", "an empty part between slashes"),
    ("/tools", "it starts with a slash"),
    ("tools/", "it ends with a slash, so its last part is empty"),
    (".hidden", "it starts with a dot"),
    ("-x", "it starts with a hyphen"),
    ("_x", "it starts with an underscore"),
    ("a b", "a space"),
    ("a\n", "a line break at the end"),
    ("é", "a letter outside ASCII"),
    ("\u0430", "a Cyrillic letter that looks like a Latin one"),
    ("\uff41", "a fullwidth letter"),
    ("\u0661", "an Arabic digit"),
    ("a:b", "a colon"),
    ("a\\b", "a backslash"),
    ("a\x00", "a null character"),
)
MEDIA_TYPES = ("text/plain", "application/json", "application/vnd.example+json", "a/b", "image/svg+xml", "0/a!#$&-^_.+",
               "x/" + "y" * 125)  # fmt: skip
REFUSED_MEDIA_TYPES = (
    ("", "it is empty"),
    ("text", "the second part is missing"),
    ("text/", "the second part is empty"),
    ("/plain", "the first part is empty"),
    ("Text/plain", "a capital letter"),
    ("text/plain; charset=utf-8", "it has a parameter"),
    ("text/plain/x", "it has three parts"),
    ("text /plain", "a space"),
    ("text/plain\n", "a line break at the end"),
    ("text/*", "a wildcard is not a type"),
    (".x/y", "a part starts with a dot"),
    ("x/" + "y" * 126, "it has more than 127 characters"),
    ("text/pläin", "a letter outside ASCII"),
)
TEXTS = ("x", "Grüße, 世界", "🙂", "e\u0301", "a\u00a0b", "\u200b", "\ufeff", "x" * 512, "é" * 256, "\U0010ffff")
REFUSED_TEXTS = (
    ("", "it is empty, where at least one byte is expected"),
    ("x" * 513, "it has 513 bytes"),
    ("é" * 257, "it has 257 characters and 514 bytes; bytes of UTF-8 count"),
    ("a\nb", "a line break"),
    ("a\x00b", "a null character"),
    ("\x1b[31mred", "a control character, which could command a terminal"),
    ("a\x7f", "the control character DEL"),
    ("a\x85b", "the control character NEL, a line break"),
    ("a\u2028b", "a line separator"),
    ("a\u2029b", "a paragraph separator"),
    ("\u202eabc", "an override of the direction of text"),
    ("\u2066abc", "an isolate of the direction of text"),
    ("\u200fabc", "a right-to-left mark"),
    ("\u061cabc", "an Arabic letter mark"),
)


def names() -> Json:
    return {
        "about": "Text on the wire. `names` are those of capabilities and operations, stages and codes; `media_types` "
        "stand in access records; `texts` are notes, of 1 to 512 bytes of UTF-8.",
        "names": list(_texts(NAMES)),
        "refused_names": list(_refused_texts(REFUSED_NAMES, "name")),
        "media_types": list(_texts(MEDIA_TYPES)),
        "refused_media_types": list(_refused_texts(REFUSED_MEDIA_TYPES, "field")),
        "texts": list(_texts(TEXTS)),
        "refused_texts": list(_refused_texts(REFUSED_TEXTS, "field")),
    }


def _texts(given: tuple[str, ...]) -> list[Json]:
    return [{"text": text} for text in given]


def _refused_texts(given: tuple[tuple[str, str], ...], code: str) -> list[Json]:
    return [{"text": text, "code": code, "reason": reason} for text, reason in given]
