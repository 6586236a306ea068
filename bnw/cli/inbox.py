"""The commands `bnw inbox`: sealed messages with files, without any call."""

from __future__ import annotations

import mimetypes
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from bnw.cli.files import check_readable
from bnw.cli.parameters import any_path, identity
from bnw.cli.session import Session, node_command
from bnw.cli.steps import step_text
from bnw.cli.units import moment_text, size_text
from bnw.wire.errors import ExitStatus, LocalError
from bnw.wire.limits import MAX_PAYLOAD

ANY_BYTES = "application/octet-stream"


@click.group(short_help="Send and receive sealed files.")
def inbox() -> None:
    """Send and receive sealed messages: files of up to 1 GiB that only sender and recipient can read."""


@inbox.command(name="list", short_help="List the messages that have come.")
@node_command
def list_(session: Session) -> None:
    """List the messages that have come, the latest first. They wait here until `bnw inbox ack`, or until they expire.

    \b
    Example: bnw inbox list
    """
    from bnw.cli.tables import table

    with session.node(settled=True) as client:
        value = client.get("/v1/inbox")

    def lines() -> list[str]:
        rows = [
            (
                message["id"][:16],
                moment_text(message["received"]),
                "?" if message["bytes"] is None else size_text(message["bytes"]),
                message["name"] or message["problem"] or "(no name)",
                "opened" if message["opened"] else "new",
                message["sender"],
            )
            for message in value["messages"]
        ]
        return table(["ID", "RECEIVED", "SIZE", "NAME", "", "FROM"], rows) if rows else ["no messages"]

    session.show(value, lines)


@inbox.command(short_help="Send files, sealed, to an identity.")
@click.argument("files", nargs=-1, required=True, type=any_path)
@click.option("--to", "recipient", type=identity, required=True, metavar="IDENTITY", help="Who can read them.")
@click.option("--media-type", help="Of the files. Default: from their names.")
@node_command
def send(session: Session, files: tuple[Path, ...], recipient: str, media_type: str | None) -> None:
    """Seal FILES for an identity and bring each to it, or to its mailboxes if it is away. Ends once one of them has all
    of it, so that this node may leave.

    \b
    Example: bnw inbox send report.pdf --to did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK
    """
    for path in files:
        check_readable(path, MAX_PAYLOAD)
    sent: list[dict[str, Any]] = []
    with session.node(settled=True) as client:
        for path in files:
            body = {
                "recipient": recipient,
                "path": str(path.absolute()),
                "name": path.name,
                "media_type": media_type or mimetypes.guess_type(path.name)[0] or ANY_BYTES,
            }
            with client.lines("POST", "/v1/inbox/send", body=body) as events:
                sent.append({"file": str(path), **_follow(session, events)})
    session.show({"sent": sent}, lambda: [f"{entry['id'][:16]}  {entry['file']}: {_where(entry)}" for entry in sent])


@inbox.command(name="open", short_help="Open a message into a file.")
@click.argument("message")
@click.option("--into", type=any_path, default=Path(), metavar="DIR", help="Where to. Default: here.")
@node_command
def open_(session: Session, message: str, into: Path) -> None:
    """Open MESSAGE, an id or the beginning of one, into a new file. The sender's name for it is made safe, and no file
    that is there is written over.

    \b
    Example: bnw inbox open 5f2c07aa91d3e846 --into ~/Downloads
    """
    if not into.is_dir():
        raise LocalError(
            "no-directory",
            "there is no such directory",
            place=str(into),
            cure="make it first, or choose another",
            exit_status=ExitStatus.USAGE,
        )
    body = {"reference": message, "directory": str(into.absolute())}
    with session.node() as client, client.lines("POST", "/v1/inbox/open", body=body) as events:
        value = _follow(session, events)
    session.show(value, lambda: [f"{value['file']}: {size_text(value['bytes'])}, from {value['sender']}"])


@inbox.command(short_help="Drop a message.")
@click.argument("message")
@node_command
def ack(session: Session, message: str) -> None:
    """Drop MESSAGE, an id or the beginning of one: it was read, or is not wanted. Mailboxes have let go of it already.

    \b
    Example: bnw inbox ack 5f2c07aa91d3e846
    """
    with session.node() as client:
        value = client.post("/v1/inbox/ack", {"reference": message})
    session.show(value, lambda: [f"dropped {value['id'][:16]}"])


def _follow(session: Session, events: Iterator[dict[str, Any]]) -> dict[str, Any]:
    for event in events:
        if event.pop("event") == "result":
            return event
        session.note(step_text(event))
    raise LocalError(
        "node-ended",
        "the node ended before it was done",
        cure="start it again with `bnw run`",
        exit_status=ExitStatus.UNREACHABLE,
    )


def _where(entry: dict[str, Any]) -> str:
    missing = f"; {'; '.join(entry['problems'])}" if entry["problems"] else ""
    return f"held by {', '.join(entry['held_by'])}{missing}"
