"""`kill -9` at the worst moments: what a node has acknowledged is there when it comes back."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from commands import BNW, variables

from bnw.api.client import ApiClient
from bnw.cli.node_process import NodeProcess
from bnw.node.home import Home
from bnw.node.opening import initialise_home

ROUNDS = 20
HOMES = 2
"""Worked on at the same time, so that the test takes half as long."""


class Acknowledged:
    """What a node has said that it keeps, and a check that it does."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}
        self.published: dict[str, str] = {}
        self.withdrawn: set[str] = set()

    def check(self, client: ApiClient) -> None:
        for id, data in self.blobs.items():
            assert client.get_bytes(f"/v1/blobs/{id}") == data
        found = {entry["name"]: entry["manifest_id"] for entry in client.get("/v1/catalog", mine=True)["capabilities"]}
        assert found == self.published

    def add_more(self, client: ApiClient, round: int) -> None:
        """One to four things, the last of each kind in turn: the node is killed right after its acknowledgement."""
        kinds = (self._small_blob, self._large_blob, self._publish, self._withdraw)
        for number in range(round % 4 + 1):
            kinds[(round + number) % 4](client, f"{round}-{number}")

    def _small_blob(self, client: ApiClient, what: str) -> None:
        data = f"small {what}".encode() * 10
        self.blobs[client.post_bytes("/v1/blobs", data)["id"]] = data

    def _large_blob(self, client: ApiClient, what: str) -> None:
        data = f"large {what}".encode() * 20_000
        self.blobs[client.post_bytes("/v1/blobs", data)["id"]] = data

    def _publish(self, client: ApiClient, what: str) -> None:
        name = f"capability-{what}"
        self.published[name] = client.post_bytes("/v1/catalog", what.encode(), name=name)["manifest_id"]

    def _withdraw(self, client: ApiClient, what: str) -> None:
        self._publish(client, what)
        name = f"capability-{what}"
        client.post("/v1/catalog/withdraw", {"name": name})
        del self.published[name]


def kill_again_and_again(home: Home, rounds: int) -> Acknowledged:
    initialise_home(home)
    acknowledged = Acknowledged()
    for round in range(rounds):
        with NodeProcess.started(home) as node:
            acknowledged.check(node.client())
            acknowledged.add_more(node.client(), round)
            node.process.kill()
    with NodeProcess.started(home) as node:
        acknowledged.check(node.client())
    return acknowledged


def test_what_was_acknowledged_survives_twenty_kills(
    tmp_path: Path, call_into_killed_provider: subprocess.Popen[bytes]
) -> None:
    with ThreadPoolExecutor(HOMES) as pool:
        homes = [Home(tmp_path / str(number)) for number in range(HOMES)]
        ends = list(pool.map(lambda home: kill_again_and_again(home, ROUNDS // HOMES), homes))
    for end in ends:
        assert len(end.blobs) >= ROUNDS // HOMES // 2
        assert len(end.published) >= 3


@pytest.fixture(scope="module")
def call_into_killed_provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[subprocess.Popen[bytes]]:
    """A call whose provider had acknowledged it, was killed while it ran, and has come back.

    The requester asks again after ten seconds, and ten seconds after that; this passes while the other test works.
    """
    root = tmp_path_factory.mktemp("killed")
    requester, provider, running = Home(root / "requester"), Home(root / "provider"), root / "running"
    program = (
        f"import os, time; parent = os.getppid(); open({str(running)!r}, 'w').close()\n"
        "while os.getppid() == parent: time.sleep(0.05)"
    )
    initialise_home(requester)
    initialise_home(provider)
    with NodeProcess.started(requester) as asking:
        with NodeProcess.started(provider, ["--peer", asking.ready["addresses"][0]]) as answering:
            listen = answering.ready["addresses"][0].partition("/p2p/")[0]
            manifest = answering.client().post_bytes("/v1/catalog", b"opaque", name="killed")["manifest_id"]
            body = {"reference": manifest, "arguments": [sys.executable, "-c", program], "anyone": True, "detach": True}
            answering.client().post("/v1/provide", body)
            call = subprocess.Popen(
                [*BNW, "invoke", "killed", "--data", "x", "--json", "--patience", "30s"],
                env=variables(requester.path),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            while not running.exists():
                assert call.poll() is None, call.communicate()
            answering.process.kill()
        try:
            with NodeProcess.started(provider, ["--listen", listen]):
                yield call
        finally:
            call.kill()
            call.communicate()


def test_a_call_that_its_provider_was_killed_in_ends_as_interrupted(
    call_into_killed_provider: subprocess.Popen[bytes],
) -> None:
    out, err = call_into_killed_provider.communicate(timeout=60)
    document = json.loads(out)
    assert (document["status"], document["error"]["code"]) == ("interrupted", "interrupted")
    assert (call_into_killed_provider.returncode, err) == (1, b"")
