"""What the core asks of the layer that understands descriptors. It never parses one itself (design section 2).

The value types are structural, so that neither side imports the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from bnw.wire.content_id import ContentId

PRIVACY_PUBLIC = "public"
PRIVACY_SEALED = "participant-encrypted"


class PayloadLimits(Protocol):
    """What one direction of a call may carry."""

    @property
    def media_types(self) -> tuple[str, ...]: ...
    @property
    def max_bytes(self) -> int: ...
    @property
    def privacy(self) -> str: ...


class DescriptorLimits(Protocol):
    @property
    def input(self) -> PayloadLimits: ...
    @property
    def output(self) -> PayloadLimits: ...


class LocatedError(Protocol):
    """One fault in a document; `pointer` is a JSON pointer (RFC 6901)."""

    @property
    def pointer(self) -> str: ...
    @property
    def message(self) -> str: ...


class Fact(Protocol):
    """One line of a summary for people."""

    @property
    def label(self) -> str: ...
    @property
    def value(self) -> str | tuple[str, ...]: ...


class Description(Protocol):
    """What a profile says of a descriptor that it claims. With `errors` it has neither links nor limits."""

    @property
    def profile(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def facts(self) -> Sequence[Fact]: ...
    @property
    def errors(self) -> Sequence[LocatedError]: ...
    @property
    def links(self) -> tuple[ContentId, ...]: ...
    @property
    def limits(self) -> DescriptorLimits | None: ...


class DescriptorPlugins(Protocol):
    """Judges descriptors and what goes in and out. Bounded in time and memory; a failing plug-in is its own fault."""

    async def describe(self, descriptor: bytes) -> Description | None:
        """What the profile that claims `descriptor` says of it; None if no profile does, which leaves it opaque."""
        ...

    async def check_input(
        self, descriptor: bytes, schemas: Mapping[ContentId, bytes], media_type: str, data: bytes
    ) -> Sequence[LocatedError]:
        """What is wrong with an input; empty if nothing is, or if nobody can tell."""
        ...

    async def check_output(
        self, descriptor: bytes, schemas: Mapping[ContentId, bytes], media_type: str, data: bytes
    ) -> Sequence[LocatedError]: ...

    async def check_unread(
        self, descriptor: bytes, media_type: str, size: int, *, output: bool
    ) -> Sequence[LocatedError]:
        """What is wrong with a payload of more than `MAX_PAYLOAD_IN_MEMORY` bytes, which nobody looks into: its size or
        media type, or that there is a schema which it cannot be held to.
        """
        ...

    async def starter(self, descriptor: bytes, schemas: Mapping[ContentId, bytes]) -> bytes | None:
        """An input document to start from, if one can be derived."""
        ...


class OpaqueDescriptors:
    """No plug-ins: every descriptor is opaque, and nothing is checked against one."""

    async def describe(self, descriptor: bytes) -> Description | None:
        return None

    async def check_input(
        self, descriptor: bytes, schemas: Mapping[ContentId, bytes], media_type: str, data: bytes
    ) -> Sequence[LocatedError]:
        return ()

    async def check_output(
        self, descriptor: bytes, schemas: Mapping[ContentId, bytes], media_type: str, data: bytes
    ) -> Sequence[LocatedError]:
        return ()

    async def check_unread(
        self, descriptor: bytes, media_type: str, size: int, *, output: bool
    ) -> Sequence[LocatedError]:
        return ()

    async def starter(self, descriptor: bytes, schemas: Mapping[ContentId, bytes]) -> bytes | None:
        return None
