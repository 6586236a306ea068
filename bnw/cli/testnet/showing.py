"""A testnet as people and programs see it."""

from __future__ import annotations

from typing import Any

from bnw.api.client import ApiClient
from bnw.cli.tables import table
from bnw.cli.testnet.processes import is_alive, is_paused
from bnw.cli.testnet.starting import tail
from bnw.cli.testnet.state import RUNNING, NetDirectory, NetState, NodeState
from bnw.wire.errors import BnwError

PAUSED = "paused"
ENDED = "ended by itself"


def overview(directory: NetDirectory, state: NetState) -> dict[str, Any]:
    """Everything, as JSON; asks each node that runs."""
    return {
        "directory": str(directory.path),
        "phase": state.phase,
        "topology": state.topology,
        "nodes": [_node_value(directory, node) for node in state.nodes.values()],
    }


def state_of(node: NodeState) -> str:
    """What a node is now, in a word or three."""
    if node.process is None or not is_alive(node.process):
        return node.wanted if node.wanted != RUNNING else ENDED
    return PAUSED if is_paused(node.process) else RUNNING


def _node_value(directory: NetDirectory, node: NodeState) -> dict[str, Any]:
    now = state_of(node)
    value: dict[str, Any] = {
        "name": node.name,
        "state": now,
        "process": node.process.id if node.process is not None and now in (RUNNING, PAUSED) else None,
        "identity": node.identity,
        "address": node.address if now in (RUNNING, PAUSED) else None,
        "home": str(directory.home(node.name).path),
        "log": str(directory.log(node.name)),
        "neighbours": node.neighbours,
        "peers": None,
        "catalog_objects": None,
        "problem": None,
    }
    if now == RUNNING:
        try:
            with ApiClient(directory.home(node.name).socket) as client:
                found = client.get("/v1/status")
            value |= {"peers": len(found["peers"]), "catalog_objects": found["catalog_objects"]}
        except BnwError as error:
            value["problem"] = error.cause
    elif now == ENDED:
        value["problem"] = next(iter(reversed(tail(directory.log(node.name)))), None)
    return value


def overview_lines(value: dict[str, Any]) -> list[str]:
    rows = [
        (
            node["name"],
            node["state"],
            _number(node["peers"]),
            _number(node["catalog_objects"]),
            _number(node["process"]),
            node["problem"] or node["address"] or "-",
        )
        for node in value["nodes"]
    ]
    running = sum(node["state"] == RUNNING for node in value["nodes"])
    heading = f"{running} of {len(rows)} nodes run, topology {value['topology']}, in {value['directory']}"
    if value["phase"] != "up":
        heading += f" ({value['phase']})"
    return [*table(["NODE", "STATE", "PEERS", "CATALOG", "PROCESS", "ADDRESS"], rows), "", heading]


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)
