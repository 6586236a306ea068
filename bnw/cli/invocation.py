"""Commands about calls that were made: `bnw invocation list|show|wait|cancel|export|verify`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from bnw.cli.calls import MAX_OUTPUT_HELP, follow, show_result
from bnw.cli.catalog import file_path
from bnw.cli.files import read_file, write_file
from bnw.cli.session import Session, node_command
from bnw.cli.units import Size, moment_text, size_text
from bnw.wire.errors import ExitStatus, InvalidError, LocalError
from bnw.wire.limits import MIB

MAX_PROOF = 8 * MIB


@click.group(short_help="Look at calls that were made, and take them up again.")
def invocation() -> None:
    """Calls that this node has made: look at them, take them up again, stop them, prove them.

    ID is an invocation's id, or at least its first eight digits.
    """


@invocation.command("list")
@node_command
def list_(session: Session) -> None:
    """List the calls that this node has made, the latest first.

    \b
    Example: bnw invocation list --json
    """
    from bnw.cli.tables import table

    with session.node() as client:
        value = client.get("/v1/invocations")
    rows = [
        (call["invocation_id"][:16], call["name"], moment_text(call["created"]), _status(call), call["stage"] or "")
        for call in value["invocations"]
    ]
    session.show(value, lambda: table(("id", "capability", "made", "status", "stage"), rows))


@invocation.command()
@click.argument("id")
@node_command
def show(session: Session, id: str) -> None:
    """Show all that is known of call ID.

    \b
    Example: bnw invocation show 52d0621a
    """
    with session.node() as client:
        value = client.get(f"/v1/invocations/{id}")
    session.show(value, lambda: _call_lines(value))


@invocation.command(short_help="Take a call up again and print its verified output.")
@click.argument("id")
@click.option("--output", type=file_path, help="A file for the output, instead of standard output.")
@click.option("--force", is_flag=True, help="Write over an existing file.")
@click.option("--max-output", type=Size(), help=MAX_OUTPUT_HELP)
@node_command
def wait(session: Session, id: str, output: Path | None, force: bool, max_output: int | None) -> None:
    """Take call ID up again, whoever began it, and print its verified output as `bnw invoke` does.

    \b
    Example: bnw invocation wait 52d0621a
    """
    if output is not None and output.exists() and not force:
        write_file(output, b"", force=False)
    with (
        session.node(settled=True) as client,
        client.lines("POST", f"/v1/invocations/{id}/wait", max_output=max_output) as events,
    ):
        result = follow(session, events)
        show_result(session, client, result, output, force=force)


@invocation.command()
@click.argument("id")
@node_command
def cancel(session: Session, id: str) -> None:
    """Ask the provider to stop call ID. Its receipt says what came of it.

    \b
    Example: bnw invocation cancel 52d0621a && bnw invocation wait 52d0621a
    """
    with session.node(settled=True) as client:
        value = client.post(f"/v1/invocations/{id}/cancel")
    session.show(value, lambda: [f"{value['invocation_id']}: {_status(value)}"])


@invocation.command()
@click.argument("id")
@click.option("--output", type=file_path, required=True, help="The file to write.")
@click.option("--force", is_flag=True, help="Write over an existing file.")
@node_command
def export(session: Session, id: str, output: Path, force: bool) -> None:
    """Write the proof of call ID to a file that anybody can check.

    \b
    Example: bnw invocation export 52d0621a --output call.proof
    """
    with session.node(settled=True) as client:
        data = client.get_bytes(f"/v1/invocations/{id}/proof")
    write_file(output, data, force=force)
    value = {"file": str(output), "bytes": len(data)}
    session.show(value, lambda: [f"{output}: {size_text(len(data))}"])


@invocation.command(short_help="Check a proof of a call.")
@click.argument("file", type=file_path)
@node_command
def verify(session: Session, file: Path) -> None:
    """Check a proof: who asked what of whom, under what authority, and what came of it. Needs no node and no network.

    \b
    Example: bnw invocation verify call.proof
    """
    from bnw.invoke.proof import verify_proof

    try:
        proof = verify_proof(read_file(file, MAX_PROOF))
    except InvalidError as error:
        raise LocalError(
            error.code,
            f"this proves nothing: {error.cause}",
            place=f"{file}: {error.place}" if error.place else str(file),
            cure="ask for the file again; it must not change by a single byte",
            exit_status=ExitStatus.REFUSED,
        ) from None
    value = _proof_json(proof)
    session.show(value, lambda: _proof_lines(value))


def _status(call: dict[str, Any]) -> str:
    if call["status"] is not None:
        return f"{call['status']} ({call['code']})" if call["code"] else str(call["status"])
    return f"{call['state']}, to be cancelled" if call["cancellation_id"] else str(call["state"])


def _call_lines(call: dict[str, Any]) -> list[str]:
    from bnw.cli.tables import facts

    pairs = [
        ("invocation", call["invocation_id"]),
        ("capability", f"{call['name']} ({call['capability']})"),
        ("provider", call["provider"]),
        ("status", _status(call)),
        ("made", moment_text(call["created"])),
        ("deadline", moment_text(call["deadline"])),
        *[("delegation", link) for link in call["delegations"]],
    ]
    if call["stage"]:
        fraction = "" if call["fraction"] is None else f" {call['fraction']:.0%}"
        pairs.append(("progress", f"{call['stage']}{fraction} {call['note'] or ''}"))
    for label in ("received", "started", "finished"):
        if call[label] is not None:
            pairs.append((label, moment_text(call[label])))
    if call["receipt_id"]:
        pairs.append(("receipt", call["receipt_id"]))
    if call["contradicted"]:
        pairs.append(("warning", "the provider signed two receipts that contradict each other; the proof shows both"))
    return facts(pairs)


def _proof_json(proof: Any) -> dict[str, Any]:
    from bnw.identity.keys import did_key

    receipt = None if proof.receipt is None else proof.receipt.body
    return {
        "valid": True,
        "invocation_id": proof.invocation.id.hex(),
        "requester": did_key(proof.invocation.signer),
        "provider": did_key(proof.body.provider),
        "capability": proof.manifest.body.name,
        "manifest_id": proof.manifest.id.hex(),
        "publisher": did_key(proof.manifest.signer),
        "created": proof.body.created,
        "deadline": proof.body.deadline,
        "input": proof.body.input.hex(),
        "receipt_id": None if proof.receipt is None else proof.receipt.id.hex(),
        "status": None if receipt is None else receipt.status,
        "code": None if receipt is None or receipt.fault is None else receipt.fault.code,
        "started": None if receipt is None else receipt.started,
        "finished": None if receipt is None else receipt.finished,
        "output": None if receipt is None or receipt.output is None else receipt.output.hex(),
        "updates": len(proof.updates),
        "cancelled": proof.cancellation is not None,
        "provider_may_provide": proof.may_provide.allowed,
        "authority": None if proof.authority is None else proof.authority.to_json(),
        "contradiction": None if proof.contradiction is None else proof.contradiction.id.hex(),
    }


def _proof_lines(value: dict[str, Any]) -> list[str]:
    from bnw.cli.tables import facts

    pairs = [
        ("valid", "every signature and every reference was checked"),
        ("invocation", value["invocation_id"]),
        ("requester", value["requester"]),
        ("capability", f"{value['capability']} ({value['manifest_id']})"),
        ("publisher", value["publisher"]),
        ("provider", value["provider"] + ("" if value["provider_may_provide"] else ", WITHOUT LEAVE to provide it")),
        ("asked", moment_text(value["created"])),
        ("input", value["input"]),
    ]
    authority = value["authority"]
    if authority is None:
        pairs.append(("authority", "none shown: the provider's own policy decided"))
    else:
        pairs.append(("authority", f"{len(authority['links'])} delegations: {authority['code']}"))
    if value["status"] is None:
        pairs.append(("receipt", "none: the provider has not said what came of it"))
    else:
        code = f" ({value['code']})" if value["code"] else ""
        pairs += [("receipt", value["receipt_id"]), ("status", value["status"] + code)]
        pairs += [("finished", moment_text(value["finished"]))]
    if value["contradiction"]:
        pairs.append(("contradiction", f"the provider signed another receipt too: {value['contradiction']}"))
    return facts(pairs)
