"""The commands `bnw mailbox`: holding mail for others, and choosing who holds one's own."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import click

from bnw.cli.parameters import identity, peer_address
from bnw.cli.session import Session, node_command
from bnw.cli.units import Duration, Size, moment_text, size_text
from bnw.wire.errors import ExitStatus, LocalError

_SETTING = re.compile(r"^mailboxes\s*=\s*\[[^\]]*\][^\n]*$", re.MULTILINE)


@click.group(short_help="Hold mail for others, or have yours held.")
def mailbox() -> None:
    """Hold mail for others while they are away, and choose the mailboxes that hold yours."""


@mailbox.command(short_help="Hold mail for an identity.")
@click.argument("who", type=identity, metavar="IDENTITY")
@click.option("--bytes", "size", type=Size(), default="2GiB", show_default=True, help="How much to hold at most.")
@click.option("--objects", type=click.IntRange(1, 100_000), default=10_000, show_default=True, help="How many objects.")
@click.option("--age", type=Duration(), default="30d", show_default=True, help="How long to hold it.")
@node_command
def allow(session: Session, who: str, size: int, objects: int, age: int) -> None:
    """Hold mail for IDENTITY while it is away, within these bounds. It must name this node as its mailbox, with `bnw
    mailbox use`. What is held cannot be read here.

    \b
    Example: bnw mailbox allow did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK --bytes 500MiB
    """
    body = {"identity": who, "bytes": size, "objects": objects, "age_ms": age}
    with session.node() as client:
        value = client.post("/v1/mailbox/allow", body)
        address = _own_address(client.get("/v1/status"))
    session.show(value, lambda: [f"holding mail for {who}", f"it names this mailbox with: bnw mailbox use {address}"])


@mailbox.command(short_help="Take no more mail for an identity.")
@click.argument("who", type=identity, metavar="IDENTITY")
@node_command
def deny(session: Session, who: str) -> None:
    """Take no more mail for IDENTITY. What is held already waits until it is collected, or too old.

    \b
    Example: bnw mailbox deny did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK
    """
    with session.node() as client:
        value = client.post("/v1/mailbox/deny", {"identity": who})
    session.show(value, lambda: [f"no more mail for {who}"])


@mailbox.command(name="list", short_help="List whom this node holds mail for.")
@node_command
def list_(session: Session) -> None:
    """List the identities that this node holds mail for, and within which bounds.

    \b
    Example: bnw mailbox list
    """
    from bnw.cli.tables import table

    with session.node() as client:
        inboxes = [inbox for inbox in client.get("/v1/mailbox")["inboxes"] if inbox["served"]]

    def lines() -> list[str]:
        if not inboxes:
            return ["no mail is held for anybody; `bnw mailbox allow` begins it"]
        rows = [
            (
                inbox["identity"],
                size_text(inbox["max_bytes"]),
                f"{inbox['max_objects']:,}",
                f"{inbox['max_age_ms'] // 86_400_000} d",
                moment_text(inbox["since"]),
            )
            for inbox in inboxes
        ]
        return table(["IDENTITY", "BYTES", "OBJECTS", "AGE", "SINCE"], rows)

    session.show({"inboxes": inboxes}, lines)


@mailbox.command(short_help="Show what is held, and which mailboxes are used.")
@node_command
def status(session: Session) -> None:
    """Show how much is held for whom, and which mailboxes hold this identity's own mail.

    \b
    Example: bnw mailbox status --json
    """
    from bnw.cli.tables import table

    with session.node() as client:
        value = client.get("/v1/mailbox")

    def lines() -> list[str]:
        rows = [
            (
                inbox["identity"],
                f"{inbox['objects']:,}",
                size_text(inbox["bytes"]),
                "-" if inbox["oldest"] is None else moment_text(inbox["oldest"]),
                "" if inbox["served"] else "denied",
            )
            for inbox in value["inboxes"]
        ]
        held = table(["HELD FOR", "OBJECTS", "BYTES", "OLDEST", ""], rows) if rows else ["nothing is held for others"]
        used = [f"own mail is held by {' '.join(box['endpoints'])}" for box in value["used"]]
        return [*held, *(used or ["no mailbox holds this identity's mail; `bnw mailbox use` names one"])]

    session.show(value, lines)


@mailbox.command(short_help="Let a mailbox hold this identity's mail.")
@click.argument("address", type=peer_address)
@node_command
def use(session: Session, address: str) -> None:
    """Name the node at ADDRESS as a mailbox of this identity, in the configuration. A running node says so to the
    network when it is started again. The mailbox must have allowed this identity, with `bnw mailbox allow`.

    \b
    Example: bnw mailbox use /ip4/192.0.2.7/tcp/4001/p2p/12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN
    """
    _change(session, lambda used: [*used, *([] if address in used else [address])])


@mailbox.command(short_help="Use a mailbox no longer.")
@click.argument("address", type=peer_address)
@node_command
def drop(session: Session, address: str) -> None:
    """Name the node at ADDRESS as a mailbox no longer. Collect what it holds first.

    \b
    Example: bnw mailbox drop /ip4/192.0.2.7/tcp/4001/p2p/12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN
    """

    def without(used: list[str]) -> list[str]:
        if address not in used:
            raise LocalError(
                "not-used",
                "this mailbox is not named in the configuration",
                place=address,
                cure="`bnw mailbox status` shows those that are",
                exit_status=ExitStatus.USAGE,
            )
        return [other for other in used if other != address]

    _change(session, without)


def _change(session: Session, change: Callable[[list[str]], list[str]]) -> None:
    """Edit the one setting and leave the rest of the file, comments included, as it is."""
    from dataclasses import replace

    from bnw.identity.private_file import write_private_file
    from bnw.node.configuration import load_configuration
    from bnw.wire.errors import InvalidError

    session.require_home()
    path = session.home.configuration
    configuration = load_configuration(path)
    used = change(list(configuration.mailboxes))
    try:
        replace(configuration, mailboxes=tuple(used))
    except InvalidError as error:
        raise error.at("mailboxes") from None
    text = path.read_text() if path.exists() else ""
    setting = f"mailboxes = {json.dumps(used)}"
    text = _SETTING.sub(lambda match: setting, text, count=1) if _SETTING.search(text) else f"{text}\n{setting}\n"
    write_private_file(path, text.encode())
    running = _is_running(session)
    value = {"mailboxes": used, "restart_needed": running}
    lines = [f"mailbox   {address}" for address in used] or ["no mailbox is used"]
    session.show(value, lambda: [*lines, *(["start the node again, so that others hear of it"] if running else [])])


def _is_running(session: Session) -> bool:
    try:
        with session.running_node() as client:
            client.get("/v1/status")
    except LocalError as error:
        if error.code != "no-node":
            raise
        return False
    return True


def _own_address(status: dict[str, Any]) -> str:
    addresses = status["addresses"]
    return str(addresses[0]) if addresses else "ADDRESS"
