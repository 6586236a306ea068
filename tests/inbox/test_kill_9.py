"""A payload moves between two processes, and both are killed several times on the way."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from queue import Queue
from threading import Thread

import pytest
from mover import Plain

import bnw
from bnw.wire.limits import MIB, PAYLOAD_CHUNK

CHUNKS = 64
PATIENCE = 60.0
SCRIPT = Path(__file__).with_name("mover.py")


class Mover:
    """A running `mover.py`, and the lines that it says."""

    def __init__(self, *arguments: object) -> None:
        environment = {**os.environ, "PYTHONPATH": str(Path(bnw.__file__).parents[1])}
        command = [sys.executable, str(SCRIPT), *map(str, arguments)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        self.lines: Queue[str] = Queue()
        self.said: list[str] = []
        self._reader = Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append(line.strip())
            self.lines.put(line.strip())
        self.lines.put("")

    def wait_for(self, word: str) -> str:
        """What follows the next line that begins with `word`."""
        while True:
            line = self.lines.get(timeout=PATIENCE)
            assert line, f"it ended before it said {word!r}"
            if line.split()[0] == word:
                return line.removeprefix(word).strip()

    def wait_until_kept(self, count: int) -> int:
        while (kept := int(self.wait_for("kept")) // PAYLOAD_CHUNK) < count:
            pass
        return kept

    def kill(self) -> list[str]:
        """Kill it; returns everything it said."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self._reader.join()
        assert self.process.stdout is not None
        self.process.stdout.close()
        return self.said


@contextmanager
def running(*arguments: object) -> Iterator[Mover]:
    mover = Mover(*arguments)
    try:
        yield mover
    finally:
        mover.kill()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


@pytest.mark.anyio
async def test_each_kill_of_either_side_costs_at_most_one_chunk_twice(tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    kill_at = sorted(chance.sample(range(3, CHUNKS - 3), 4))
    victims = ["fetch", "serve", "fetch", "serve"]
    source, target, out = tmp_path / "source", tmp_path / "target", tmp_path / "out"
    source.mkdir()
    port = free_port()
    served: Counter[str] = Counter()

    with ExitStack() as stack:
        server = stack.enter_context(running("serve", source, port, CHUNKS))
        address = server.wait_for("address")
        fetching = ("fetch", target, address, source / "manifest", out)
        fetcher = stack.enter_context(running(*fetching))
        for count, victim in zip(kill_at, victims, strict=True):
            fetcher.wait_until_kept(count)
            print(f"kill {victim} at chunk {count}")
            if victim == "fetch":
                fetcher.kill()
                fetcher = stack.enter_context(running(*fetching))
                assert int(fetcher.wait_for("kept")) >= count * PAYLOAD_CHUNK, "what was kept is still here"
            else:
                served.update(server.kill())
                server = stack.enter_context(running("serve", source, port, CHUNKS))
        fetcher.wait_for("saved")
        served.update(server.kill())

    counts = {line: count for line, count in served.items() if line.startswith("served")}
    print(f"{sum(counts.values())} chunks were served")
    assert len(counts) == CHUNKS
    assert sum(counts.values()) <= CHUNKS + len(victims), "one chunk twice for each kill at most"
    assert out.stat().st_size == CHUNKS * MIB
    with out.open("rb") as file:
        async for piece in Plain(CHUNKS):
            assert file.read(MIB) == piece
