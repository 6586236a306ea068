"""One memory of checked objects for all nodes of a world.

A thousand nodes check the same bytes a thousand times, and the outcome is the same each time: an object's form and its
signature depend on its bytes alone. So the first node's work is kept and given to the others; what depends on a node,
its clock, its store, its limits, is still asked of each. The report says that this was done.

Within the body of `remembering`, `bnw.objects.admission` and with it gossip and synchronisation use the memory.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from bnw.identity.keys import did_key
from bnw.objects import admission
from bnw.objects.signed import SignedObject, UnverifiedObject, parse_object
from bnw.wire.content_id import ContentId
from bnw.wire.errors import InvalidError

MAX_REMEMBERED: Final = 200_000
"""Objects; the ones not asked for longest are forgotten first."""


class _Remembered(UnverifiedObject):
    """Checks its signature once, however often it is asked."""

    __slots__ = ("_verified",)

    def verify(self) -> SignedObject:
        verified: SignedObject | bool | None = getattr(self, "_verified", None)
        if verified is None:
            verified = self.envelope.has_valid_signature() and SignedObject(self.id, self.signer, self.body, self.data)
            object.__setattr__(self, "_verified", verified)
        if isinstance(verified, SignedObject):
            return verified
        raise InvalidError(
            "signature", f"the signature of this {self.kind} is not by {did_key(self.signer)}", place=self.id.hex()
        )


class Memory:
    """Keeps what `parse_object` said of bytes. `asked` and `known` count."""

    def __init__(self) -> None:
        self._seen: OrderedDict[bytes, _Remembered | InvalidError] = OrderedDict()
        self.asked = 0
        self.known = 0

    def parse(self, data: bytes) -> UnverifiedObject:
        """As `parse_object`."""
        self.asked += 1
        found = self._seen.get(data)
        if found is None:
            found = self._parse(data)
            self._seen[bytes(data)] = found
            if len(self._seen) > MAX_REMEMBERED:
                self._seen.popitem(last=False)
        else:
            self.known += 1
        if isinstance(found, InvalidError):
            raise InvalidError(found.code, found.cause, place=found.place, cure=found.cure)
        return found

    def _parse(self, data: bytes) -> _Remembered | InvalidError:
        try:
            parsed = parse_object(data)
        except InvalidError as error:
            return error
        return _Remembered(ContentId(parsed.id), parsed.body, parsed.data, parsed.envelope)


@contextmanager
def remembering() -> Iterator[Memory]:
    """Let all nodes of this process share one memory of what they have checked."""
    memory = Memory()
    names = vars(admission)
    before = names["parse_object"]
    names["parse_object"] = memory.parse
    try:
        yield memory
    finally:
        names["parse_object"] = before
