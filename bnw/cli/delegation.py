"""Commands about authority: `bnw delegate`, `bnw revoke`, `bnw delegation list|show|explain`."""

from __future__ import annotations

import sys
from typing import Any

import click

from bnw.cli.session import Session, node_command
from bnw.cli.units import Duration, moment_text
from bnw.wire.errors import ExitStatus

RIGHTS = ("invoke", "provide", "delegate")


@click.command(short_help="Let another identity call, provide or pass that on.")
@click.argument("audience", metavar="IDENTITY")
@click.option("--right", "rights", multiple=True, type=click.Choice(RIGHTS), help="Default: invoke.")
@click.option("--capability", help="Only this one: a name or a manifest id.")
@click.option("--publisher", metavar="IDENTITY", help="Only what this identity publishes.")
@click.option("--for", "lifetime", type=Duration(), help="How long it holds. Default: 30d, or as long as the parent.")
@click.option("--max-calls", type=click.IntRange(1), help="Calls in all, at each provider.")
@click.option("--max-calls-per-hour", type=click.IntRange(1), help="Calls in any hour, at each provider.")
@click.option("--max-input-bytes", type=click.IntRange(0), help="Size of an input.")
@click.option("--under", "parent", metavar="ID", help="The delegation that gives you the right to delegate.")
@node_command
def delegate(
    session: Session,
    audience: str,
    rights: tuple[str, ...],
    capability: str | None,
    publisher: str | None,
    lifetime: int | None,
    max_calls: int | None,
    max_calls_per_hour: int | None,
    max_input_bytes: int | None,
    parent: str | None,
) -> None:
    """Let IDENTITY (a did:key) call what this identity publishes or provides, or provide it, or pass that on.

    \b
    Example: bnw delegate did:key:z6Mk... --capability finance/lookup --max-calls-per-hour 100 --for 7d
    """
    body: dict[str, Any] = {"audience": audience}
    if parent is None:
        body |= {"rights": list(rights or ("invoke",)), "lifetime_ms": lifetime or 30 * 86_400_000}
    else:
        body |= {"parent": parent}
        body |= {"rights": list(rights)} if rights else {}
        body |= {"lifetime_ms": lifetime} if lifetime else {}
    caveats = {
        "capability": capability,
        "publisher": publisher,
        "max_calls": max_calls,
        "max_calls_per_hour": max_calls_per_hour,
        "max_input_bytes": max_input_bytes,
    }
    body |= {name: value for name, value in caveats.items() if value is not None}
    with session.node(settled=True, spreading=True) as client:
        value = client.post("/v1/delegations", body)
    session.show(value, lambda: _lines(value))


@click.command()
@click.argument("id")
@node_command
def revoke(session: Session, id: str) -> None:
    """Take back delegation ID, and with it all below it. Providers who hear of it let no further call begin.

    \b
    Example: bnw revoke 0aa1...
    """
    with session.node(settled=True, spreading=True) as client:
        value = client.post("/v1/delegations/revoke", {"delegation": id})
    session.show(value, lambda: [f"revoked     {value['delegation_id']}", f"revocation  {value['revocation_id']}"])


@click.group()
def delegation() -> None:
    """Look at delegations and why they do or do not hold."""


@delegation.command("list")
@click.option("--mine", is_flag=True, help="Only those by or for this identity.")
@node_command
def list_(session: Session, mine: bool) -> None:
    """List the delegations that this node knows.

    \b
    Example: bnw delegation list --mine
    """
    from bnw.cli.tables import table

    with session.node(settled=True) as client:
        value = client.get("/v1/delegations", mine=mine)
    rows = [
        (
            entry["delegation_id"],
            entry["issuer"],
            entry["audience"],
            ", ".join(entry["rights"]),
            "revoked" if entry["revoked_by"] else moment_text(entry["expires"]),
        )
        for entry in value["delegations"]
    ]
    session.show(value, lambda: table(("id", "by", "for", "rights", "until"), rows))


@delegation.command()
@click.argument("id")
@node_command
def show(session: Session, id: str) -> None:
    """Show delegation ID and all that stands above it, from the root.

    \b
    Example: bnw delegation show 0aa1...
    """
    with session.node(settled=True) as client:
        value = client.get(f"/v1/delegations/{id}")

    def lines() -> list[str]:
        shown: list[str] = []
        for number, link in enumerate(value["chain"], 1):
            shown += [f"link {number}", *(f"  {line}" for line in _lines(link))]
        return shown

    session.show(value, lines)


@delegation.command(short_help="Say link by link why a call is or is not allowed.")
@click.argument("capability")
@click.option("--as", "actor", metavar="IDENTITY", help="Who calls or provides. Default: this node's identity.")
@click.option(
    "--right", type=click.Choice(("invoke", "provide")), default="invoke", show_default=True, help="What to do."
)
@click.option("--provider", metavar="IDENTITY", help="Whom to call. Default: the publisher.")
@click.option("--delegation", "leaf", metavar="ID", help="Judge this chain instead of the best that is known.")
@click.option("--input-bytes", type=click.IntRange(0), help="Size of the input.")
@node_command
def explain(
    session: Session,
    capability: str,
    actor: str | None,
    right: str,
    provider: str | None,
    leaf: str | None,
    input_bytes: int | None,
) -> None:
    """Say link by link why a call of CAPABILITY is or is not allowed where delegations count. Ends with 1 if not.

    \b
    Example: bnw delegation explain finance/lookup --as did:key:z6Mk...
    """
    with session.node(settled=True) as client:
        value = client.get(
            "/v1/delegations/explain",
            reference=capability,
            actor=actor,
            right=right,
            provider=provider,
            delegation=leaf,
            input_bytes=input_bytes,
        )
    lines = value.pop("lines")
    session.show(value, lambda: lines)
    if not value["allowed"]:
        sys.exit(int(ExitStatus.REFUSED))


def _lines(entry: dict[str, Any]) -> list[str]:
    from bnw.cli.tables import facts

    if entry.get("missing"):
        return facts([("delegation", entry["delegation_id"]), ("missing", "not known to this node")])
    pairs = [
        ("delegation", entry["delegation_id"]),
        ("by", entry["issuer"]),
        ("for", entry["audience"]),
        ("rights", ", ".join(entry["rights"])),
        ("from", moment_text(entry["not_before"])),
        ("until", moment_text(entry["expires"])),
    ]
    for name, label in (
        ("parent", "under"),
        ("capability", "only"),
        ("publisher", "only by"),
        ("max_calls", "calls"),
        ("max_calls_per_hour", "calls/hour"),
        ("max_input_bytes", "input bytes"),
        ("revoked_by", "REVOKED BY"),
    ):
        if entry[name] is not None:
            pairs.append((label, str(entry[name])))
    return facts(pairs)
