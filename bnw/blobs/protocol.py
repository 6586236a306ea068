"""`/bnw/blob/1`: on one stream, any number of requests one after the other, each answered before the next.

→ get {id}
← blob {size}, then that many raw bytes      or      ← absent {}      or      ← busy {}
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bnw.objects.fields import CONTENT_ID, integer, spec
from bnw.objects.message import Message
from bnw.wire.content_id import ContentId
from bnw.wire.limits import MAX_BLOB

BLOB_PROTOCOL = "/bnw/blob/1"


@dataclass(frozen=True, slots=True)
class GetBlob(Message):
    TYPE: ClassVar[str] = "get"
    id: ContentId = spec(CONTENT_ID)


@dataclass(frozen=True, slots=True)
class BlobFollows(Message):
    TYPE: ClassVar[str] = "blob"
    size: int = spec(integer(0, MAX_BLOB))


@dataclass(frozen=True, slots=True)
class BlobAbsent(Message):
    """The peer does not have the blob, or does not serve it."""

    TYPE: ClassVar[str] = "absent"


@dataclass(frozen=True, slots=True)
class BlobBusy(Message):
    """The peer serves as many as it can already; ask another one, or later."""

    TYPE: ClassVar[str] = "busy"
