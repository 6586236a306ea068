"""Commands about a provider's policy file: `bnw policy check`, `bnw policy test`. They need no node."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from bnw.cli.catalog import file_path
from bnw.cli.session import Session, node_command
from bnw.wire.errors import ExitStatus, InvalidError


@click.group()
def policy() -> None:
    """Check and try a provider's policy file."""


@policy.command()
@click.argument("file", type=file_path)
@node_command
def check(session: Session, file: Path) -> None:
    """Read policy FILE and say what it means. Ends with 2, and names the place, if it has a fault.

    \b
    Example: bnw policy check policy.toml
    """
    from bnw.node.policy_file import read_policy

    found = read_policy(file)
    sections = {**found.capabilities, "(any other)": found.default}
    value = {"valid": True, "capabilities": {name: _json(section) for name, section in sections.items()}}
    session.show(value, lambda: [f"{name}: {section.calls}" for name, section in sections.items()])


@policy.command(short_help="Say whether an identity may call a capability.")
@click.argument("file", type=file_path)
@click.argument("capability")
@click.option("--as", "identity", metavar="IDENTITY", required=True, help="Who would call (did:key:...).")
@click.option("--input-bytes", type=click.IntRange(0), help="Size of the input.")
@node_command
def test(session: Session, file: Path, capability: str, identity: str, input_bytes: int | None) -> None:
    """Say whether IDENTITY may call CAPABILITY, a name or a manifest id, under policy FILE. Ends with 1 if not.

    \b
    Example: bnw policy test policy.toml finance/lookup --as did:key:z6Mk...
    """
    from bnw.identity.keys import parse_did_key
    from bnw.node.policy_file import read_policy
    from bnw.wire.content_id import content_id

    try:
        who = parse_did_key(identity)
    except InvalidError as error:
        raise error.at("--as") from None
    found = read_policy(file)
    section = found.capabilities.get(capability) or found.of(capability, content_id(b""))
    calls = section.calls
    verdict = "open" if calls.anyone else "listed" if who in calls.listed else "delegation-needed"
    cause = {
        "open": "anyone may call",
        "listed": "the identity is listed",
        "delegation-needed": "the identity may call if it shows a delegation by the provider or the publisher",
    }[verdict]
    try:
        calls.check(who, shows_delegations=True)
        if input_bytes is not None:
            calls.check_input(input_bytes)
    except InvalidError as error:
        verdict, cause = error.code, error.cause
    allowed = verdict in {"open", "listed"}
    value = {"allowed": allowed, "code": verdict, "message": cause, "policy": _json(section)}
    session.show(value, lambda: [f"{'allowed' if allowed else 'not allowed'}: {verdict}: {cause}"])
    if not allowed:
        sys.exit(int(ExitStatus.REFUSED))


def _json(section: Any) -> dict[str, Any]:
    from bnw.identity.keys import did_key

    calls = section.calls
    return {
        "anyone": calls.anyone,
        "listed": sorted(did_key(who) for who in calls.listed),
        "delegated": calls.delegated,
        "calls_per_minute": calls.calls_per_minute,
        "at_once": calls.at_once,
        "max_input_bytes": calls.max_input_bytes,
        "max_output_bytes": calls.max_output_bytes,
        "max_run_time_ms": calls.max_run_time,
        "environment": sorted(section.environment or {}),
        "directory": section.directory,
    }
