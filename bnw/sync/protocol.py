"""`/bnw/sync/1`: one stream is one pull by the side that opened it, or one hint. Version 1 of the messages.

→ open {version, scope, message}         ← reconcile {message}          the first two messages of Negentropy
→ reconcile {message}                    ← reconcile {message}          further ones, until the puller knows enough
→ want {ids}                             ← objects {objects, more}      as often as needed, until `more` is false
                                         ← refused {code, retry_after}  instead of any answer, and then nothing else

An inbox scope is opened with one more exchange, whoever asks for whichever inbox (`bnw.sync.inbox_access`):

→ open {version, scope, message}         ← challenge {nonce}
→ proof {signature}                      ← reconcile {message}          the answer to the message of `open`

→ hint {version, scope, count, fingerprint}      "I have something new"; the receiver may pull

`want` and `reconcile` may come in any order after `open`, and several may be under way; they are answered in order. The
puller ends the session by closing the stream. The answering side keeps nothing between messages but what it counts
against the limits below.

A refusal says what kind it is and for how long not to ask again. Whoever gets one waits for at least that long, and
twice as long after each further one (`bnw.sync.backoff`), whatever the refusing side claims.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from bnw.objects.fields import BOOLEAN, CONTENT_ID, array, choice, integer, raw_bytes, spec, text
from bnw.objects.message import Message
from bnw.wire.cbor import Value
from bnw.wire.content_id import ContentId
from bnw.wire.limits import KIB, MAX_FRAME, MAX_SIGNED_OBJECT, MIB

SYNC_PROTOCOL: Final = "/bnw/sync/1"
VERSION: Final = 1

MAX_NEGENTROPY: Final = 64 * KIB
"""Bytes of one Negentropy message. This many can make the answering side compute some 3,400 fingerprints (50 ms)."""
MAX_ROUNDS: Final = 64
"""Round trips of Negentropy in one session: 130,000 ids can be listed in as many."""
MAX_WANTED: Final = 16_384
"""Ids that one session asks for. Who lacks more pulls again."""
MAX_IDS_PER_WANT: Final = 512
MAX_OBJECTS_PER_FRAME: Final = 512
MAX_OBJECT_BYTES_PER_FRAME: Final = MAX_FRAME - 8 * KIB
"""Room for objects in one frame; 8 KiB covers the heads of 512 of them."""
MAX_SESSION_BYTES: Final = 64 * MIB
"""Bytes of objects in one session."""
SESSION_TIMEOUT: Final = 300.0
"""Seconds that a session may last."""
MESSAGE_TIMEOUT: Final = 30.0
"""Seconds within which a whole message must arrive, however it trickles."""

REFUSED_SCOPE: Final = "scope"
"""There is no such scope, or it is none of the peer's business: the two look alike."""
REFUSED_BUSY: Final = "busy"
REFUSED_FRAME: Final = "frame-too-large"
REFUSED_VERSION: Final = "version"
REFUSED_LIMIT: Final = "limit"
"""The session has used up what one session may ask for."""

MAX_RETRY_AFTER: Final = 3600
"""Seconds; a refusal cannot ask for more."""
RETRY_AFTER: Final = {
    REFUSED_SCOPE: 600,
    REFUSED_BUSY: 10,
    REFUSED_FRAME: 600,
    REFUSED_VERSION: 600,
    REFUSED_LIMIT: 30,
}

_SCOPE = text(1, 128)
_COUNT = integer(0)
_FINGERPRINT = raw_bytes(32, 32)
_NONCE = raw_bytes(32, 32)
_SIGNATURE = raw_bytes(64, 64)
_NEGENTROPY = raw_bytes(1, MAX_NEGENTROPY)
_VERSION = integer(VERSION, VERSION)


@dataclass(frozen=True, slots=True)
class SyncOpen(Message):
    TYPE: ClassVar[str] = "open"
    message: bytes = spec(_NEGENTROPY)
    scope: str = spec(_SCOPE)
    version: int = spec(_VERSION)


@dataclass(frozen=True, slots=True)
class SyncChallenge(Message):
    TYPE: ClassVar[str] = "challenge"
    nonce: bytes = spec(_NONCE)


@dataclass(frozen=True, slots=True)
class SyncProof(Message):
    TYPE: ClassVar[str] = "proof"
    signature: bytes = spec(_SIGNATURE)


@dataclass(frozen=True, slots=True)
class SyncHint(Message):
    TYPE: ClassVar[str] = "hint"
    count: int = spec(_COUNT)
    fingerprint: bytes = spec(_FINGERPRINT)
    scope: str = spec(_SCOPE)
    version: int = spec(_VERSION)


@dataclass(frozen=True, slots=True)
class SyncReconcile(Message):
    TYPE: ClassVar[str] = "reconcile"
    message: bytes = spec(_NEGENTROPY)


@dataclass(frozen=True, slots=True)
class SyncWant(Message):
    TYPE: ClassVar[str] = "want"
    ids: tuple[ContentId, ...] = spec(array(CONTENT_ID, 1, MAX_IDS_PER_WANT))


@dataclass(frozen=True, slots=True)
class SyncObjects(Message):
    TYPE: ClassVar[str] = "objects"
    more: bool = spec(BOOLEAN)
    objects: tuple[bytes, ...] = spec(array(raw_bytes(1, MAX_SIGNED_OBJECT), 0, MAX_OBJECTS_PER_FRAME))


@dataclass(frozen=True, slots=True)
class SyncRefused(Message):
    TYPE: ClassVar[str] = "refused"
    code: str = spec(choice(REFUSED_SCOPE, REFUSED_BUSY, REFUSED_FRAME, REFUSED_VERSION, REFUSED_LIMIT))
    retry_after: int = spec(integer(0, MAX_RETRY_AFTER))


def refusal(code: str) -> SyncRefused:
    return SyncRefused(code, RETRY_AFTER[code])


def is_too_large(value: dict[str, Value] | None) -> bool:
    """Whether a message from a puller holds more of Negentropy than one message may."""
    message = None if value is None else value.get("message")
    return isinstance(message, bytes) and len(message) > MAX_NEGENTROPY


def speaks_other_version(value: dict[str, Value] | None) -> bool:
    """Whether a first message says that it is of a version that is not known here, and so may have any form."""
    version = None if value is None else value.get("version")
    return type(version) is int and version != VERSION
