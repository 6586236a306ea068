"""Commands about the node itself: init, run, status, peers, id."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import click

from bnw.cli.parameters import listen_address, network_name, peer_address
from bnw.cli.session import Session, node_command
from bnw.cli.units import moment_text, size_text
from bnw.wire.errors import ExitStatus, InvalidError, LocalError

LOG_LEVELS = ("debug", "info", "warning", "error")


@click.command(short_help="Make a home with new keys.")
@click.option("--protect", is_flag=True, help="Ask for a passphrase to protect the keys with.")
@click.option("--peer", "peers", type=peer_address, multiple=True, metavar="ADDRESS", help="To stay connected to.")
@click.option(
    "--listen", type=listen_address, multiple=True, metavar="ADDRESS", help="Where to be reached; loopback if left out."
)
@click.option(
    "--network", type=network_name, metavar="NAME", help="The network whose catalog to share.  [default: main]"
)
@node_command
def init(session: Session, protect: bool, peers: tuple[str, ...], listen: tuple[str, ...], network: str | None) -> None:
    """Make a home with new keys. Touches nothing that is there already.

    \b
    Example: bnw init --peer /ip4/192.0.2.7/tcp/4001/p2p/12D3KooW...
    """
    from bnw.identity.keys import did_key
    from bnw.node.configuration import LISTEN_HERE, Configuration
    from bnw.node.opening import initialise_home

    try:
        configuration = Configuration(network=network or "main", peers=peers, listen=listen or LISTEN_HERE)
    except InvalidError as error:
        raise error.at("options") from None
    if (network or peers or listen) and session.home.configuration.exists():
        raise LocalError(
            "configuration-exists",
            "there is a configuration here already, which --network, --peer and --listen would not change",
            place=str(session.home.configuration),
            cure="leave them out, and edit the file",
            exit_status=ExitStatus.USAGE,
        )
    passphrase = session.new_passphrase() if protect else session.passphrase()
    keystore = initialise_home(session.home, passphrase=passphrase, configuration=configuration)
    identity = did_key(keystore.signing_key.identity)
    value = {"home": str(session.home.path), "identity": identity, "protected": passphrase is not None}
    protection = (
        "protected by the passphrase" if passphrase is not None else "no passphrase protects them (see --protect)"
    )
    session.show(
        value,
        lambda: [f"identity  {identity}", f"home      {session.home.path}", f"keys      {protection}"],
    )


@click.command(short_help="Run the node until it is interrupted.")
@click.option(
    "--peer", "peers", type=peer_address, multiple=True, metavar="ADDRESS", help="One more to stay connected to."
)
@click.option(
    "--listen",
    type=listen_address,
    multiple=True,
    metavar="ADDRESS",
    help="Where to be reached, instead of the configuration.",
)
@click.option(
    "--mailbox",
    "mailboxes",
    type=peer_address,
    multiple=True,
    metavar="ADDRESS",
    help="One more that holds this identity's mail.",
)
@click.option("--log", type=click.Choice(LOG_LEVELS), default="warning", show_default=True, help="What to log.")
@click.option("--while-stdin-is-open", is_flag=True, hidden=True)
@node_command
def run(
    session: Session,
    peers: tuple[str, ...],
    listen: tuple[str, ...],
    mailboxes: tuple[str, ...],
    log: str,
    while_stdin_is_open: bool,
) -> None:
    """Run the node until it is interrupted.

    \b
    Example: bnw run --listen /ip4/0.0.0.0/tcp/4001
    """
    import logging

    from bnw.node.configuration import load_configuration

    session.require_home()
    logging.basicConfig(stream=sys.stderr, level=log.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    configuration = load_configuration(session.home.configuration)
    try:
        configuration = replace(
            configuration,
            peers=(*configuration.peers, *peers),
            mailboxes=(*configuration.mailboxes, *mailboxes),
            listen=listen or configuration.listen,
        )
    except InvalidError as error:
        raise error.at("options") from None
    from bnw.cli.running import run_node  # takes most of a second, which a mistake in the configuration need not cost

    run_node(session, configuration, session.passphrase_for_keystore(), while_stdin_is_open=while_stdin_is_open)


@click.command(short_help="Show the running node's state.")
@node_command
def status(session: Session) -> None:
    """Show the running node's state.

    \b
    Example: bnw status --json
    """
    from bnw.cli.tables import facts

    with session.running_node() as client:
        value = client.get("/v1/status")
    session.show(value, lambda: facts(_status_facts(value)))


def _status_facts(value: dict[str, Any]) -> list[tuple[str, str]]:
    pairs = [("identity", value["identity"]), ("network", value["network"])]
    pairs += [("address", address) for address in value["addresses"]]
    pairs.append(("peers", f"{len(value['peers'])} connected"))
    pairs += [("unreachable", f"{address}: {cause}") for address, cause in value["unreachable"].items()]
    return [
        *pairs,
        ("catalog", f"{value['catalog_objects']:,} objects"),
        ("objects", f"{value['objects']:,} ({size_text(value['object_bytes'])})"),
        ("blobs", f"{value['blobs']:,} ({size_text(value['blob_bytes'])})"),
        ("providing", f"{len(value['providing'])} capabilities"),
        ("since", moment_text(value["started"])),
    ]


@click.command(short_help="List the peers of the running node, or connect to one.")
@click.option(
    "--connect", type=peer_address, metavar="ADDRESS", help="Connect to a peer first, for as long as the node runs."
)
@node_command
def peers(session: Session, connect: str | None) -> None:
    """List the peers that the running node is connected to.

    \b
    Example: bnw peers
    """
    from bnw.cli.tables import table

    with session.running_node() as client:
        if connect is not None:
            client.post("/v1/connect", {"address": connect})
        value = client.get("/v1/status")
    found = {"peers": value["peers"], "unreachable": value["unreachable"]}

    def lines() -> list[str]:
        rows = [
            (peer["peer"], "they dialled" if peer["inbound"] else "we dialled", " ".join(peer["addresses"]))
            for peer in value["peers"]
        ]
        missing = [f"not connected: {address}: {cause}" for address, cause in value["unreachable"].items()]
        return [*(table(["PEER", "BY", "ADDRESSES"], rows) if rows else ["no peers"]), *missing]

    session.show(found, lines)


@click.command(name="id", short_help="Print this home's identity.")
@node_command
def id_(session: Session) -> None:
    """Print this home's identity, which others name in policies.

    \b
    Example: bnw id
    """
    identity = _identity(session)
    session.show({"identity": identity}, lambda: [identity])


def _identity(session: Session) -> str:
    """From the running node, which has the keys open, or else from the keystore."""
    try:
        with session.running_node() as client:
            identity: str = client.get("/v1/status")["identity"]
            return identity
    except LocalError as error:
        if error.code != "no-node":
            raise
    from bnw.identity.keys import did_key
    from bnw.identity.keystore import load_keystore

    keystore = load_keystore(session.home.keystore, passphrase=session.passphrase_for_keystore())
    return did_key(keystore.signing_key.identity)
