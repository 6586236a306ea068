"""The profile layer as a node wants it: asynchronous. Its calls block, so they run in a thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import anyio
import anyio.to_thread

from bnw.invoke.descriptors import Description, LocatedError
from bnw.profiles.service import ProfileService
from bnw.wire.content_id import ContentId

MAX_CALLS_AT_ONCE = 4


class ThreadedProfiles:
    """Implements `bnw.invoke.descriptors.DescriptorPlugins` over a `ProfileService`."""

    def __init__(self, service: ProfileService) -> None:
        self._service = service
        self._limiter = anyio.CapacityLimiter(MAX_CALLS_AT_ONCE)

    async def describe(self, descriptor: bytes) -> Description | None:
        return await anyio.to_thread.run_sync(self._service.describe, descriptor, limiter=self._limiter)

    async def check_input(
        self, descriptor: bytes, schemas: Mapping[ContentId, bytes], media_type: str, data: bytes
    ) -> Sequence[LocatedError]:
        return await anyio.to_thread.run_sync(
            self._service.check_input, descriptor, schemas, media_type, data, limiter=self._limiter
        )

    async def check_output(
        self, descriptor: bytes, schemas: Mapping[ContentId, bytes], media_type: str, data: bytes
    ) -> Sequence[LocatedError]:
        return await anyio.to_thread.run_sync(
            self._service.check_output, descriptor, schemas, media_type, data, limiter=self._limiter
        )

    async def check_unread(
        self, descriptor: bytes, media_type: str, size: int, *, output: bool
    ) -> Sequence[LocatedError]:
        check = partial(self._service.check_unread, descriptor, media_type, size, output=output)
        return await anyio.to_thread.run_sync(check, limiter=self._limiter)

    async def starter(self, descriptor: bytes, schemas: Mapping[ContentId, bytes]) -> bytes | None:
        return await anyio.to_thread.run_sync(self._service.starter, descriptor, schemas, limiter=self._limiter)
