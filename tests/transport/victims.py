"""Runs `victim.py` and watches it from outside."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import DEVNULL, PIPE

import anyio
import psutil
from anyio.abc import Process
from worlds import SeededEnvironment, ask_echo

from bnw.transport.p2p import P2PTransport

SCRIPT = Path(__file__).with_name("victim.py")


class Victim:
    def __init__(self, process: Process, address: str) -> None:
        self.address = address
        self.heard: list[str] = []
        self._process = process
        self._watched = psutil.Process(process.pid)
        self._usual_memory = self.memory
        self._peak_memory = self._usual_memory

    @property
    def runs(self) -> bool:
        return self._process.returncode is None and self._watched.status() != psutil.STATUS_ZOMBIE

    @property
    def memory(self) -> int:
        """Resident memory in bytes."""
        return int(self._watched.memory_info().rss)

    @property
    def growth(self) -> float:
        """By how many MiB memory has at most exceeded that at the start."""
        return (self._peak_memory - self._usual_memory) / 2**20

    async def dies(self, within: float = 30.0) -> bool:
        with anyio.move_on_after(within):
            return await self._process.wait() != 0
        return False

    async def serves(self, within: float = 5.0) -> bool:
        """Whether an honest peer can connect and gets an answer on a stream."""
        honest = P2PTransport(seed=b"honest".ljust(32), listen=[], environment=SeededEnvironment(1))
        with anyio.move_on_after(within):
            async with honest:
                try:
                    peer = await honest.dial(self.address, timeout=within)
                    return await ask_echo(honest, peer, b"are you there?") == b"are you there?"
                except Exception as error:
                    print(f"an honest peer was not served: {error!r}")
        return False

    async def watch_memory(self) -> None:
        while True:
            self._peak_memory = max(self._peak_memory, self.memory)
            await anyio.sleep(0.02)

    async def listen(self, lines: AsyncIterator[str]) -> None:
        async for line in lines:
            self.heard.append(line)


async def _lines(process: Process) -> AsyncIterator[str]:
    assert process.stdout is not None
    buffer = b""
    async for chunk in process.stdout:
        *lines, buffer = (buffer + chunk).split(b"\n")
        for line in lines:
            yield line.decode()


@asynccontextmanager
async def run_victim(kind: str, **settings: int) -> AsyncIterator[Victim]:
    """A victim in a process of its own; `kind` is `stock` or `cured`."""
    command = [sys.executable, str(SCRIPT), kind, *(f"{name}={value}" for name, value in settings.items())]
    async with await anyio.open_process(command, stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL) as process:
        try:
            lines = _lines(process)
            with anyio.fail_after(20):
                address = await anext(lines)
            victim = Victim(process, address)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(victim.watch_memory)
                tasks.start_soon(victim.listen, lines)
                yield victim
                tasks.cancel_scope.cancel()
        finally:
            if process.returncode is None:
                process.kill()
