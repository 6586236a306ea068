"""Answers in many lines: what they end with, and what ends with them."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from raw_http import Raw

from bnw.cli.node_process import NodeProcess
from bnw.node.home import Home
from bnw.node.opening import initialise_home
from bnw.wire.errors import LocalError


def published(node: NodeProcess, name: str) -> str:
    manifest: str = node.client().post_bytes("/v1/catalog", name.encode(), name=name)["manifest_id"]
    return manifest


@contextmanager
def provided(node: NodeProcess, reference: str, **more: object) -> Iterator[dict[str, Any]]:
    """What the stream of a provision says first."""
    body = {"reference": reference, "arguments": [sys.executable, "-c", "print()"], **more}
    with node.client().lines("POST", "/v1/provide", body=body) as events:
        yield next(events)


def wait_until_withdrawn(node: NodeProcess, manifest: str) -> None:
    """The node learns that a reader is gone a moment after the reader goes."""
    deadline = time.monotonic() + 20
    while node.client().get("/v1/catalog/inspect", reference=manifest)["offers"]:
        assert time.monotonic() < deadline
    assert manifest not in node.client().get("/v1/status")["providing"]


def test_a_capability_is_provided_as_long_as_somebody_reads(node: NodeProcess) -> None:
    manifest = published(node, "while/read")
    with provided(node, manifest) as first:
        assert (first["event"], first["capability"]) == ("providing", manifest)
        assert node.client().get("/v1/status")["providing"] == [manifest]
        [offer] = node.client().get("/v1/catalog/inspect", reference=manifest)["offers"]
        assert offer["offer_id"] == first["offer_id"]
    wait_until_withdrawn(node, manifest)
    # And it can be provided again.
    with provided(node, manifest):
        pass
    wait_until_withdrawn(node, manifest)


def test_a_reader_that_dies_without_a_word_ends_it_too(node: NodeProcess, raw: Raw) -> None:
    manifest = published(node, "died/reading")
    body = json.dumps({"reference": manifest, "arguments": ["/bin/cat"]}).encode()
    with raw.connected() as connection:
        connection.sendall(b"POST /v1/provide HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        received = b""
        while b'"providing"' not in received:
            received += connection.recv(4096)
        assert node.client().get("/v1/status")["providing"] == [manifest]
    wait_until_withdrawn(node, manifest)


def test_what_was_left_to_the_node_stays_until_it_is_stopped(node: NodeProcess) -> None:
    manifest = published(node, "left/to-the-node")
    client = node.client()
    client.post("/v1/provide", {"reference": manifest, "arguments": ["/bin/cat"], "detach": True})
    assert client.get("/v1/status")["providing"] == [manifest]
    assert client.post("/v1/provide/stop", {"capability": manifest}) == {"stopped": manifest}
    assert client.get("/v1/status")["providing"] == []


def test_the_same_capability_is_not_provided_twice(node: NodeProcess) -> None:
    manifest = published(node, "only/once")
    with provided(node, manifest):
        for detach in (True, False):
            with pytest.raises(LocalError) as caught:
                if detach:
                    body = {"reference": "only/once", "arguments": ["/bin/cat"], "detach": True}
                    node.client().post("/v1/provide", body)
                else:
                    with provided(node, "only/once"):
                        pytest.fail("it was provided twice")
            assert (caught.value.code, caught.value.place) == ("already-provided", "only/once")
            assert caught.value.cure
        # The refused one did not end the other.
        assert node.client().get("/v1/status")["providing"] == [manifest]
    wait_until_withdrawn(node, manifest)


def test_an_error_in_a_stream_is_a_line_with_all_that_an_error_has(raw: Raw) -> None:
    answer = raw.ask("POST", "/v1/invoke?reference=no/such&patience_ms=1", b"x")
    assert answer.status == 200
    assert answer.body.count(b"\n") == 1
    line = json.loads(answer.body)
    assert line.pop("event") == "error"
    assert sorted(line["error"]) == ["blame", "code", "cure", "exit_status", "message", "place"]
    assert (line["error"]["code"], line["error"]["place"]) == ("unknown-capability", "no/such")


def test_the_client_raises_an_error_that_comes_in_a_stream(node: NodeProcess) -> None:
    client = node.client()
    with (
        pytest.raises(LocalError) as caught,
        client.lines("POST", "/v1/invoke", data=b"x", reference="no/such", patience_ms=1) as events,
    ):
        list(events)
    assert (caught.value.code, int(caught.value.exit_status)) == ("unknown-capability", 1)


def test_events_tell_of_nothing_before_they_are_listened_to(node: NodeProcess) -> None:
    with node.client().lines("GET", "/v1/events") as events:
        assert next(events) == {"event": "listening"}


def test_settling_and_spreading_without_peers_end_at_once(node: NodeProcess) -> None:
    with node.client().lines("POST", "/v1/settle") as events:
        [last] = list(events)
    assert (last["event"], last["identity"]) == ("result", node.ready["identity"])
    with node.client().lines("POST", "/v1/spread") as events:
        assert list(events) == [{"event": "result", "without": []}]


def test_many_streams_at_once_leave_the_node_answering(node: NodeProcess, raw: Raw) -> None:
    connections = [raw.connected() for _ in range(100)]
    for connection in connections:
        connection.sendall(b"GET /v1/events HTTP/1.1\r\nHost: x\r\n\r\n")
    for connection in connections:
        received = b""
        while b"listening" not in received:
            received += connection.recv(4096)
    assert node.client().get("/v1/status")["peer"] == node.ready["peer"]
    for connection in connections:
        connection.close()
    assert node.client().get("/v1/status")["peer"] == node.ready["peer"]


def test_a_node_that_ends_ends_its_streams_and_withdraws_first(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    initialise_home(home)
    with NodeProcess.started(home) as node:
        manifest = published(node, "until/the-end")
        body = {"reference": manifest, "arguments": ["/bin/cat"]}
        with node.client().lines("POST", "/v1/provide", body=body) as events:
            next(events)
            node.process.terminate()
            assert list(events) == []
        assert node.process.wait(30) == 0
    with NodeProcess.started(home) as node:
        assert node.client().get("/v1/catalog/inspect", reference=manifest)["offers"] == []
