"""`/bnw/sync/1`: one stream is one pull by the side that opened it, or one hint.

→ open {scope, count, fingerprint}            the puller's own summary of the scope
← same {}                                     nothing to do
← refused {code}                              unknown scope, or too busy; a typed answer, not to be repeated at once
← ids {ids, more}                             a page of ids, strictly ascending
→ want {ids}      ← objects {objects, more}   as often as needed, until `more` is false
→ next {}         ← ids {ids, more}           until `more` is false

→ hint {scope, count, fingerprint}            "I have something new"; the receiver may pull
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bnw.objects.fields import BOOLEAN, CONTENT_ID, array, choice, integer, raw_bytes, spec, text
from bnw.objects.message import Message
from bnw.wire.content_id import ContentId
from bnw.wire.limits import KIB, MAX_FRAME, MAX_SIGNED_OBJECT

SYNC_PROTOCOL = "/bnw/sync/1"

MAX_IDS_PER_PAGE = 1024
MAX_IDS_WANTED = 256
MAX_OBJECTS_PER_FRAME = 256
MAX_OBJECT_BYTES_PER_FRAME = MAX_FRAME - 8 * KIB
"""Room for objects in one frame; 8 KiB covers the heads of 256 of them."""
MAX_PAGES = 256
"""Pages of one pull: 262,144 ids. A peer that has more is pulled again, from the next page on, another time."""

REFUSED_SCOPE = "scope"
REFUSED_BUSY = "busy"

_SCOPE = text(1, 128)
_COUNT = integer(0)
_FINGERPRINT = raw_bytes(32, 32)


@dataclass(frozen=True, slots=True)
class SyncOpen(Message):
    TYPE: ClassVar[str] = "open"
    count: int = spec(_COUNT)
    fingerprint: bytes = spec(_FINGERPRINT)
    scope: str = spec(_SCOPE)


@dataclass(frozen=True, slots=True)
class SyncHint(Message):
    TYPE: ClassVar[str] = "hint"
    count: int = spec(_COUNT)
    fingerprint: bytes = spec(_FINGERPRINT)
    scope: str = spec(_SCOPE)


@dataclass(frozen=True, slots=True)
class SyncSame(Message):
    TYPE: ClassVar[str] = "same"


@dataclass(frozen=True, slots=True)
class SyncRefused(Message):
    TYPE: ClassVar[str] = "refused"
    code: str = spec(choice(REFUSED_SCOPE, REFUSED_BUSY))


@dataclass(frozen=True, slots=True)
class SyncIds(Message):
    TYPE: ClassVar[str] = "ids"
    ids: tuple[ContentId, ...] = spec(array(CONTENT_ID, 0, MAX_IDS_PER_PAGE, ascending=True))
    more: bool = spec(BOOLEAN)


@dataclass(frozen=True, slots=True)
class SyncNext(Message):
    TYPE: ClassVar[str] = "next"


@dataclass(frozen=True, slots=True)
class SyncWant(Message):
    TYPE: ClassVar[str] = "want"
    ids: tuple[ContentId, ...] = spec(array(CONTENT_ID, 1, MAX_IDS_WANTED, ascending=True))


@dataclass(frozen=True, slots=True)
class SyncObjects(Message):
    TYPE: ClassVar[str] = "objects"
    more: bool = spec(BOOLEAN)
    objects: tuple[bytes, ...] = spec(array(raw_bytes(1, MAX_SIGNED_OBJECT), 0, MAX_OBJECTS_PER_FRAME))
