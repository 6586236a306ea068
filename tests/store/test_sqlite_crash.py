"""Killed at any moment, a store has everything that it acknowledged, and nothing by halves."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import anyio
import pytest
from crash_writer import PER_ROUND, ROOMY, blob
from store_objects import NOW, offer
from store_objects import cancellation as sign_cancellation
from store_objects import delegation as sign_delegation

import bnw
from bnw.objects.rules import sequence_of, slot_of
from bnw.store.scopes import inbox_scope, summary
from bnw.store.sqlite import SqliteStore
from bnw.wire.content_id import content_id

ROUNDS = 20
ROUNDS_PER_DIRECTORY = 5
LONGEST_LIFE = 0.15
"""Seconds. Opening takes some of it, and is killed as well."""

cancellation, delegation = cache(sign_cancellation), cache(sign_delegation)  # every round looks at them again


@pytest.fixture
def writer() -> Iterator[subprocess.Popen[str]]:
    script = Path(__file__).with_name("crash_writer.py")
    environment = {**os.environ, "PYTHONPATH": str(Path(bnw.__file__).parents[1])}
    with subprocess.Popen(
        [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(10) == 0


def kill_while_it_writes(writer: subprocess.Popen[str], directory: Path, number: int, life: float) -> list[str]:
    """Start a writer, kill it after `life` seconds, and return what it said had been acknowledged."""
    assert writer.stdin is not None
    assert writer.stdout is not None
    writer.stdin.write(f"{directory} {number}\n")
    writer.stdin.flush()
    pid = int(writer.stdout.readline().removeprefix("pid "))
    time.sleep(life)
    os.kill(pid, signal.SIGKILL)
    return list(iter(lambda: writer.stdout.readline().strip(), "dead"))


async def check(directory: Path, acknowledged: set[str]) -> None:
    async with SqliteStore.open(directory, ROOMY) as store:
        newest: dict[int, int] = {}
        for line in acknowledged:
            word, number = line.split()[0], int(line.split()[1])
            match word:
                case "objects":
                    for obj in (delegation(number), delegation(number + 3)):
                        assert await store.get_object(obj.id) == obj
                    newest[0] = max(newest.get(0, 0), number + 1)
                case "blob":
                    assert await store.get_blob(content_id(blob(number))) == blob(number)
                case "record":
                    assert await store.get_record("calls", str(number).encode()) == str(number).encode()
        if newest:
            held = await store.held_in_slot(slot_of(offer()) or b"")
            assert held is not None
            assert sequence_of(held.body) >= newest[0]
        # A record and its object went in together or not at all.
        records = await store.list_records("calls", limit=100_000)
        mail = inbox_scope(cancellation().body.recipient)  # type: ignore[attr-defined]  # a cancellation has one
        ids = await store.scope_ids(mail, now=NOW, limit=100_000)
        assert ids == sorted(cancellation(int(key)).id for key, _ in records)
        # The running totals agree with what they count.
        for scope in ("catalog", mail):
            ids = await store.scope_ids(scope, now=NOW, limit=1_000_000)
            total = sum(int.from_bytes(id, "little") for id in ids)
            assert await store.scope_summary(scope, now=NOW) == summary(len(ids), total, [])
        assert list((directory / "blobs" / "tmp").iterdir()) == []


def test_everything_acknowledged_survives_kill_9(writer: subprocess.Popen[str], tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    acknowledged = set[str]()
    total = 0
    for number in range(ROUNDS):
        directory = tmp_path / f"store-{number // ROUNDS_PER_DIRECTORY}"
        if number % ROUNDS_PER_DIRECTORY == 0:
            acknowledged.clear()
        life = chance.uniform(0, LONGEST_LIFE)
        lines = kill_while_it_writes(writer, directory, number, life)
        print(f"round {number}: killed after {life * 1000:.1f} ms and {len(lines)} acknowledgements")
        acknowledged.update(lines)
        total += len(lines)
        anyio.run(check, directory, acknowledged, backend="trio")
    assert total > ROUNDS, "the writer was killed before it wrote anything worth checking"
    assert total < PER_ROUND
