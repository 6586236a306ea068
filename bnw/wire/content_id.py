"""Content ids: the 32-byte BLAKE3 hash of the exact bytes (design section 4)."""

from __future__ import annotations

from typing import NewType

from blake3 import blake3

from bnw.wire.errors import InvalidError

ContentId = NewType("ContentId", bytes)

CONTENT_ID_SIZE = 32
_HEX_DIGITS = frozenset("0123456789abcdef")


def content_id(data: bytes | bytearray | memoryview) -> ContentId:
    """The content id of `data`."""
    return ContentId(blake3(data).digest())


def content_id_text(value: ContentId) -> str:
    """Text form: 64 lowercase hexadecimal digits."""
    return value.hex()


def parse_content_id(text: str) -> ContentId:
    """Read the text form; raises `InvalidError` for anything but 64 lowercase hexadecimal digits."""
    if len(text) != 2 * CONTENT_ID_SIZE or not _HEX_DIGITS.issuperset(text):
        shown = text if len(text) <= 80 else f"{text[:77]}..."
        raise InvalidError(
            "content-id",
            f"{shown!r} is not a content id",
            cure="a content id is 64 lowercase hexadecimal digits",
        )
    return ContentId(bytes.fromhex(text))
