"""The demo of a call between two nodes that are never online together: only a mailbox is always on."""

from __future__ import annotations

import base64
import os
import time  # noqa: TID251 - measures how long a person waits; no node is in this process
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bnw.cli.demo.example import NAME, QUESTION, Example
from bnw.cli.demo.scene import Outcome, Tell, plain_values
from bnw.cli.demo.search import search
from bnw.cli.node_process import NodeProcess
from bnw.cli.steps import step_text
from bnw.node.configuration import Configuration
from bnw.node.home import Home
from bnw.node.opening import initialise_home
from bnw.wire.errors import LocalError

DEADLINE_MS = 3_600_000
PATIENCE_MS = 15_000
ANSWER_TIME = 60.0
"""Seconds in which the provider has to collect the call, answer it and leave the answer."""
LOOK_PERIOD = 0.1


def play_offline(root: Path, example: Example, tell: Tell) -> Outcome:
    """Run the call in homes under `root`. Whatever happens, no process is left. Raises `LocalError` and others."""
    began = time.monotonic()
    homes = {role: Home(root / role) for role in ("mailbox", "provider", "requester")}
    initialise_home(homes["mailbox"], configuration=Configuration(network="demo"))
    with NodeProcess.started(homes["mailbox"]) as box:
        [address, *_] = box.ready["addresses"]
        tell(f"mailbox runs: process {box.ready['process']}, {address}")
        for role in ("provider", "requester"):
            initialise_home(homes[role], configuration=Configuration(network="demo", mailboxes=(address,)))
        with _online(homes["provider"], "provider", tell) as provider:
            _allow(box, provider, tell, "provider")
            manifest_id = _publish(provider, example, tell)
            with _online(homes["requester"], "requester", tell) as requester:
                _allow(box, requester, tell, "requester")
                with requester.client() as client:
                    client.get("/v1/catalog/inspect", reference=NAME, patience_ms=PATIENCE_MS)
                tell("requester knows the capability and its descriptor")
        with _online(homes["requester"], "requester", tell) as requester:
            invocation = _ask(requester, tell)
        with _online(homes["provider"], "provider", tell) as provider:
            _provide(provider, manifest_id, example)
            _wait_for_answer(box, requester.ready["identity"])
            tell("provider collected the call, answered it, and left the answer at the mailbox")
        secrets = [QUESTION]
        searches = [search(homes["mailbox"].path, secrets)]
        with _online(homes["requester"], "requester", tell) as requester:
            result = _open(requester, invocation, tell)
        answer = base64.b64decode(result.get("output_base64", ""))
        secrets = [secret for secret in (QUESTION, answer, *plain_values(result)) if secret]
        tell("searching the mailbox's home for question and answer")
        searches.append(search(homes["mailbox"].path, secrets))
    # Again after a clean end, when what was in memory is on the disk.
    searches.append(search(homes["mailbox"].path, secrets))
    control = search(homes["mailbox"].path, [NAME.encode()])
    return Outcome(manifest_id, result, searches, bool(control.found), time.monotonic() - began)


@contextmanager
def _online(home: Home, role: str, tell: Tell) -> Iterator[NodeProcess]:
    with NodeProcess.started(home) as node:
        tell(f"{role} comes: process {node.ready['process']}")
        yield node
    tell(f"{role} leaves")


def _allow(box: NodeProcess, node: NodeProcess, tell: Tell, role: str) -> None:
    with box.client() as client:
        client.post("/v1/mailbox/allow", {"identity": node.ready["identity"]})
    tell(f"mailbox holds mail for the {role} from now on")


def _publish(provider: NodeProcess, example: Example, tell: Tell) -> str:
    with provider.client() as client:
        for path in example.schemas:
            client.post_bytes("/v1/blobs", path.read_bytes())
        manifest = client.post_bytes("/v1/catalog", example.descriptor.read_bytes(), name=NAME)
    manifest_id: str = manifest["manifest_id"]
    tell(f"provider published {NAME}: manifest {manifest_id}")
    _provide(provider, manifest_id, example)
    return manifest_id


def _provide(provider: NodeProcess, manifest_id: str, example: Example) -> None:
    with provider.client() as client:
        client.post(
            "/v1/provide",
            {
                "reference": manifest_id,
                "arguments": example.arguments,
                "directory": str(example.directory),
                "environment": {name: os.environ[name] for name in ("PATH",) if name in os.environ},
                "anyone": True,
                "detach": True,
            },
        )


def _ask(requester: NodeProcess, tell: Tell) -> str:
    tell(f"requester asks, while the provider is away: {QUESTION.decode()}")
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
            detach=True,
        ) as events,
    ):
        for event in events:
            if event["event"] == "detached":
                invocation: str = event["invocation_id"]
                return invocation
            if event["event"] == "result":
                break
            tell(f"requester {step_text(event)}")
    raise LocalError("not-mailed", "the call was not left at the mailbox", place=str(requester.home.path))


def _wait_for_answer(box: NodeProcess, requester: str) -> None:
    """Until the mailbox holds an answer for the requester."""
    end = time.monotonic() + ANSWER_TIME
    with box.client() as client:
        while time.monotonic() < end:
            inboxes = client.get("/v1/mailbox")["inboxes"]
            if any(inbox["identity"] == requester and inbox["objects"] for inbox in inboxes):
                return
            time.sleep(LOOK_PERIOD)
    raise LocalError("no-answer", f"no answer was left within {ANSWER_TIME:g} s", place=str(box.home.path))


def _open(requester: NodeProcess, invocation: str, tell: Tell) -> dict[str, Any]:
    with (
        requester.client() as client,
        client.lines("POST", f"/v1/invocations/{invocation}/wait") as events,
    ):
        for event in events:
            if event.pop("event") == "result":
                return event
            tell(f"requester {step_text(event)}")
    raise LocalError("node-ended", "the requester's node ended before the answer came", place=str(requester.home.path))
