"""Commands about what the node keeps of others: follow, unfollow."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click

from bnw.cli.session import Session, node_command
from bnw.cli.units import Duration

STATES = {
    "whole": "all here",
    "coming": "on its way",
    "given-up": "given up for now",
    "absent": "not published now",
}


@click.command(short_help="Keep what others publish, and serve it to others.")
@click.argument("what", required=False)
@click.option("--patience", type=Duration(), default="5s", show_default=True, help="How long to wait for the content.")
@node_command
def follow(session: Session, what: str | None, patience: int) -> None:
    """Keep WHAT, a capability or an identity, and serve it to others. Without WHAT, list what is followed.

    WHAT is a capability's name or manifest id, or `did:key:...` for all that an identity publishes. The node keeps the
    descriptor and what it links to, also of later versions, until `bnw unfollow`. What cannot be had at once is tried
    again by the running node.

    \b
    Example: bnw follow finance/lookup
    """
    with session.node(settled=what is not None) as client:
        if what is None:
            value = client.get("/v1/follows")
            session.show(value, lambda: _list(value["follows"]))
            return
        value = client.post("/v1/follows", {"reference": what, "patience_ms": patience})
    session.show(value, lambda: [f"following {_name(value)}", *_capabilities(value)])


@click.command()
@click.argument("what")
@node_command
def unfollow(session: Session, what: str) -> None:
    """Keep WHAT, a capability or an identity, no longer.

    \b
    Example: bnw unfollow finance/lookup
    """
    with session.node() as client:
        value = client.post("/v1/follows/end", {"reference": what})
    session.show(value, lambda: [f"no longer following {_name(value)}"])


def _list(follows: list[dict[str, Any]]) -> list[str]:
    from bnw.cli.tables import table

    if not follows:
        return ["nothing is followed"]
    rows: list[tuple[str, ...]] = []
    for entry in follows:
        if entry["name"] is None and not entry["capabilities"]:
            rows.append(("(all)", "publishes nothing now", "0", entry["publisher"]))
        rows += [
            (capability["name"], STATES[capability["state"]], str(len(capability["blobs"])), entry["publisher"])
            for capability in entry["capabilities"]
        ]
    listed = table(["NAME", "CONTENT", "BLOBS", "PUBLISHER"], rows)
    return [*listed, *(line for entry in follows for line in _troubles(entry))]


def _capabilities(entry: dict[str, Any]) -> Iterable[str]:
    from bnw.wire.printable import printable

    for capability in entry["capabilities"]:
        yield f"{STATES[capability['state']]:<16}  {printable(capability['name'])}, {len(capability['blobs'])} blobs"
    yield from _troubles(entry)


def _troubles(entry: dict[str, Any]) -> Iterable[str]:
    from bnw.wire.printable import printable

    for capability in entry["capabilities"]:
        if capability["problem"] is not None:
            tried = f"tried {capability['attempts']} times; " if capability["attempts"] else ""
            yield printable(f"{capability['name']}: {tried}{capability['problem']}")
    if entry["left_out"]:
        yield f"{entry['left_out']} more capabilities of {entry['publisher']} are over the limit and not kept"


def _name(entry: dict[str, Any]) -> str:
    name, publisher = entry["name"], entry["publisher"]
    return f"all of {publisher}" if name is None else f"{name} of {publisher}"
