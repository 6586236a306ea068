"""A call that a mailbox holds, and a copy of it that arrives directly: the direct one must not end it."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
import trio.testing
from test_offline_calls import place

from bnw.sim.world import World

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return "trio", {"clock": trio.testing.MockClock(autojump_threshold=0)}


async def test_a_direct_copy_waits_for_the_one_in_the_mailbox() -> None:
    """Found by simulations/offline-provider.toml: every call ended as `not-known-to-be-new` when its provider came back
    while the requester was online.
    """
    async with World(seed=1) as world:
        here = await place(world, 1)
        id = await here.ask_and_leave()
        await here.requester.start()
        async with anyio.create_task_group() as group:
            # A restarted requester does not know that the call was mailed, and asks directly.
            group.start_soon(here.requester.node.calls.wait, id, lambda step, details: None)
            await here.provider.start()
            await anyio.sleep(30)
            await here.provide()
        [(_, call)] = await here.requester.node.calls.all()
        assert here.runs == [id]
        assert call.signed_receipt is not None
        assert call.signed_receipt.body.status == "completed"  # type: ignore[attr-defined]  # a receipt
