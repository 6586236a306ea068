"""Three nodes in processes of their own: a carrier, and a provider and a requester who know only the carrier."""

from __future__ import annotations

import base64
import os
import time  # noqa: TID251 - measures how long a person waits; no node is in this process
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bnw.cli.demo.example import NAME, QUESTION, Example
from bnw.cli.demo.search import SearchResult, search
from bnw.cli.node_process import NodeProcess
from bnw.cli.steps import step_text
from bnw.node.configuration import Configuration
from bnw.node.home import Home
from bnw.node.opening import initialise_home
from bnw.wire.errors import LocalError

Tell = Callable[[str], None]
PATIENCE_MS = 15_000
DEADLINE_MS = 30_000
ROLES = ("carrier", "provider", "requester")


@dataclass(slots=True)
class Outcome:
    """What the demo shows; `result` is the requester's, as the API gives it."""

    manifest_id: str
    result: dict[str, Any] = field(repr=False)
    searches: list[SearchResult]
    control_found: bool
    seconds: float

    @property
    def carrier_saw_plaintext(self) -> bool:
        return any(result.found for result in self.searches)

    @property
    def ok(self) -> bool:
        return self.result["status"] == "completed" and self.control_found and not self.carrier_saw_plaintext


def play(root: Path, example: Example, tell: Tell) -> Outcome:
    """Run the main job in homes under `root`. Whatever happens, no process is left. Raises `LocalError` and others."""
    began = time.monotonic()
    with _three_nodes(root, tell) as nodes:
        manifest_id = _publish(nodes["provider"], example, tell)
        result = _call(nodes["requester"], tell)
        answer = base64.b64decode(result.get("output_base64", ""))
        secrets = [secret for secret in (QUESTION, answer, *plain_values(result)) if secret]
        home = nodes["carrier"].home.path
        tell("searching the carrier's home for question and answer")
        searches = [search(home, secrets)]
    # Again after a clean end, when what was in memory is on the disk.
    searches.append(search(home, secrets))
    control = search(home, [NAME.encode()])
    return Outcome(manifest_id, result, searches, bool(control.found), time.monotonic() - began)


@contextmanager
def _three_nodes(root: Path, tell: Tell) -> Iterator[dict[str, NodeProcess]]:
    nodes: dict[str, NodeProcess] = {}
    with ExitStack() as stack:
        for role in ROLES:
            home = Home(root / role)
            known = tuple(nodes["carrier"].ready["addresses"]) if nodes else ()
            initialise_home(home, configuration=Configuration(network="demo", peers=known))
            nodes[role] = stack.enter_context(NodeProcess.started(home))
            ready = nodes[role].ready
            tell(f"{role} runs: process {ready['process']}, {ready['addresses'][0]}")
        yield nodes
        tell("stopping the nodes")


def _publish(provider: NodeProcess, example: Example, tell: Tell) -> str:
    with provider.client() as client:
        for path in example.schemas:
            client.post_bytes("/v1/blobs", path.read_bytes())
        manifest = client.post_bytes("/v1/catalog", example.descriptor.read_bytes(), name=NAME)
        manifest_id: str = manifest["manifest_id"]
        tell(f"provider published {NAME}: manifest {manifest_id}")
        body = {
            "reference": manifest_id,
            "arguments": example.arguments,
            "directory": str(example.directory),
            "environment": {name: os.environ[name] for name in ("PATH",) if name in os.environ},
            "anyone": True,
            "detach": True,
        }
        client.post("/v1/provide", body)
        tell("provider answers calls with a program that looks into a price table")
    return manifest_id


def _call(requester: NodeProcess, tell: Tell) -> dict[str, Any]:
    tell(f"requester asks: {QUESTION.decode()}")
    with (
        requester.client() as client,
        client.lines(
            "POST",
            "/v1/invoke",
            data=QUESTION,
            reference=NAME,
            media_type="application/json",
            patience_ms=PATIENCE_MS,
            deadline_ms=DEADLINE_MS,
        ) as events,
    ):
        for event in events:
            if event.pop("event") == "result":
                return event
            tell(f"requester {step_text(event)}")
    raise LocalError("node-ended", "the requester's node ended before the call did", place=str(requester.home.path))


def plain_values(result: dict[str, Any]) -> list[bytes]:
    """What is in question and answer, one by one: no other object in the network speaks of them."""
    output = result.get("output")
    if not isinstance(output, dict):
        return []
    return [f'"{output["symbol"]}"'.encode(), str(output["month"]).encode(), str(output["close"]).encode()]
