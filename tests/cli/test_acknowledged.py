"""What a node has acknowledged survives `kill -9` of its process."""

from __future__ import annotations

from bnw.cli.node_process import NodeProcess
from bnw.node.home import Home
from tests.cli.terminal import bnw

ROUNDS = 20


def test_nothing_acknowledged_is_lost_in_twenty_kills(home: Home) -> None:
    """Each round publishes, adds a blob, and kills the node as soon as it has said that both are done."""
    manifests: dict[str, str] = {}
    blobs: dict[str, bytes] = {}
    for round in range(ROUNDS):
        with NodeProcess.started(home) as process, process.client() as client:
            known = {entry["name"]: entry["manifest_id"] for entry in client.get("/v1/catalog")["capabilities"]}
            assert known == manifests
            for id, data in blobs.items():
                assert client.get_bytes(f"/v1/blobs/{id}") == data
            data = f"blob {round}".encode() * 1000
            blobs[client.post_bytes("/v1/blobs", data)["id"]] = data
            name = f"test/{round}"
            manifests[name] = client.post_bytes("/v1/catalog", f"descriptor {round}".encode(), name=name)["manifest_id"]
            process.process.kill()
    listed = bnw(home.path, "catalog", "--mine", "--json").json["capabilities"]
    assert {entry["name"]: entry["manifest_id"] for entry in listed} == manifests


def test_a_node_can_start_at_once_after_a_kill(home: Home) -> None:
    with NodeProcess.started(home) as process:
        process.process.kill()
        process.process.wait()
        assert home.socket.exists(), "the socket of the dead node is still there"
        ended = bnw(home.path, "catalog", "--json")
    assert ended.status == 0
    assert ended.json == {"capabilities": []}
