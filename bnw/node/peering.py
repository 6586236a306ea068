"""Stays connected to configured peers: dials, and dials again with growing pauses when a connection is lost."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import anyio

from bnw.transport.interface import Transport
from bnw.wire.environment import Environment, random_below
from bnw.wire.errors import BnwError

logger = logging.getLogger(__name__)

CHECK_PERIOD = 5.0
"""Seconds between looks at a connection that stands."""
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 60.0
"""Seconds between attempts: doubled each time from the first to the longest, and varied by half of it."""
EARLY_ATTEMPTS = 8
LONGEST_EARLY_PAUSE = 4.0
"""For so many attempts the pause grows no further: nodes that are started together wait for each other."""


class PeerKeeper:
    def __init__(self, transport: Transport, environment: Environment, addresses: Sequence[str]) -> None:
        self._transport = transport
        self._environment = environment
        self._addresses = tuple(dict.fromkeys(addresses))
        self.problems: dict[str, str] = {}
        """Why an address is not connected now, for the status."""
        self._tried = {address: anyio.Event() for address in self._addresses}

    async def run(self) -> None:
        async with anyio.create_task_group() as group:
            for address in self._addresses:
                group.start_soon(self._keep, address)

    async def wait_until_tried(self) -> None:
        """Return once every address has been dialled once, with or without success."""
        for event in self._tried.values():
            await event.wait()

    async def _keep(self, address: str) -> None:
        pause, attempts = FIRST_PAUSE, 0
        while True:
            try:
                # Dialling a connected peer does nothing, so this is also the check that the connection stands.
                await self._transport.dial(address)
            except BnwError as error:
                if address not in self.problems:
                    logger.warning("cannot connect to %s: %s", address, error)
                self.problems[address] = str(error)
                attempts += 1
                pause = min(2 * pause, LONGEST_EARLY_PAUSE if attempts <= EARLY_ATTEMPTS else LONGEST_PAUSE)
                wait = pause * (0.75 + random_below(self._environment, 500) / 1000)
            else:
                self.problems.pop(address, None)
                pause, wait, attempts = FIRST_PAUSE, CHECK_PERIOD, 0
            self._tried[address].set()
            await anyio.sleep(wait)
