"""Descriptor plug-ins for simulated nodes: the profile layer without its threads and worker processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from bnw.invoke.descriptors import Description, LocatedError
from bnw.profiles.registry import OWN
from bnw.profiles.service import ProfileService
from bnw.wire.content_id import ContentId


class InlineProfiles:
    """Implements `bnw.invoke.descriptors.DescriptorPlugins` with BNW's own profiles, at no cost in virtual time.

    Plug-ins that happen to be installed are left out: they would make a run differ from machine to machine. One
    instance serves all nodes of a world, as descriptions depend on nothing but the descriptor and the day.
    """

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._service = ProfileService(mode="inline", now_ms=now_ms, sources=OWN)

    async def describe(self, descriptor: bytes) -> Description | None:
        return self._service.describe(descriptor)

    async def check_input(
        self, descriptor: bytes, schemas: Mapping[ContentId, bytes], media_type: str, data: bytes
    ) -> Sequence[LocatedError]:
        return self._service.check_input(descriptor, schemas, media_type, data)

    async def check_output(
        self, descriptor: bytes, schemas: Mapping[ContentId, bytes], media_type: str, data: bytes
    ) -> Sequence[LocatedError]:
        return self._service.check_output(descriptor, schemas, media_type, data)

    async def check_unread(
        self, descriptor: bytes, media_type: str, size: int, *, output: bool
    ) -> Sequence[LocatedError]:
        return self._service.check_unread(descriptor, media_type, size, output=output)

    async def starter(self, descriptor: bytes, schemas: Mapping[ContentId, bytes]) -> bytes | None:
        return self._service.starter(descriptor, schemas)
