"""Commands about calls: provide, invoke."""

from __future__ import annotations

import base64
import mimetypes
import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from bnw.cli.catalog import Publication, file_path, with_option
from bnw.cli.files import (
    check_json,
    check_new,
    check_readable,
    print_bytes,
    print_pieces,
    read_file,
    write_file,
    write_pieces,
)
from bnw.cli.parameters import ANYONE, DELEGATED, caller, capability_name, identity
from bnw.cli.reporting import report
from bnw.cli.session import Session, node_command
from bnw.cli.steps import step_text
from bnw.cli.units import Duration, Size, size_text
from bnw.wire.errors import ExitStatus, LocalError, RemoteError
from bnw.wire.limits import MAX_PAYLOAD, MAX_PAYLOAD_IN_MEMORY

if TYPE_CHECKING:
    from bnw.api.client import ApiClient

PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TZ")
"""Variables that a program always sees. Everything else, keys above all, only with --env."""
MAX_OUTPUT_HELP = "The largest output to take, up to 1 GiB. Default: what the descriptor says, else 16 MiB."
CURES = {
    "cancelled": "calling again makes a new call",
    "expired": "allow more time with --deadline; calling again makes a new call",
    "failed": "what the program said follows, if it said anything; calling again makes a new call",
    "interrupted": "call again if it does no harm that this call may have had effects",
    "rejected": "nothing was run; change the call, or ask the provider",
}
"""What to do about a call with this status, which came to its end without an output."""


@click.command(short_help="Answer calls of a capability with a program.")
@click.argument("capability")
@click.option("--exec", "command", metavar="COMMAND", help="The program to run for each call.")
@click.option("--url", help="A service on this machine to ask instead (http://127.0.0.1:PORT/...).")
@click.option(
    "--allow",
    type=caller,
    multiple=True,
    metavar="WHO",
    help="'anyone', 'delegated' or a did:key. Default: nobody.",
)
@click.option("--policy", "policy", type=file_path, help="A policy file, read again whenever it changes.")
@click.option("--env", "variables", multiple=True, metavar="NAME[=VALUE]", help="A variable that the program sees.")
@click.option(
    "--name",
    type=capability_name,
    help="Publish CAPABILITY, a file, under this name; default: the file's name up to a dot.",
)
@with_option
@click.option("--idempotent", is_flag=True, help="A call may run again if a crash interrupted it.")
@click.option("--detach", is_flag=True, help="Leave it to the running node, until that ends, and return.")
@node_command
def provide(
    session: Session,
    capability: str,
    command: str | None,
    url: str | None,
    allow: tuple[str, ...],
    policy: Path | None,
    variables: tuple[str, ...],
    name: str | None,
    linked: tuple[Path, ...],
    idempotent: bool,
    detach: bool,
) -> None:
    """Answer calls of CAPABILITY with a program (input on standard input, output on standard output) or a service.

    CAPABILITY is a name, a manifest id, or a descriptor file, which is published first. The program runs in this
    directory, with your rights, once per call. Its failures are reported to the requester. What it is told, and how it
    reports progress, is in docs/calls.md.

    \b
    Example: bnw provide finance/lookup --exec 'python3 lookup.py' --allow anyone
    """
    if (command is None) == (url is None):
        raise click.UsageError("give either --exec or --url")
    if policy is not None and allow:
        raise click.UsageError("who may call stands either in --policy or in --allow")
    body: dict[str, Any] = {
        "arguments": [] if command is None else _arguments(command),
        "url": url or "",
        "policy": "" if policy is None else str(_checked_policy(policy)),
        "delegated": DELEGATED in allow,
        "environment": _environment(variables),
        "directory": str(Path.cwd()),
        "anyone": ANYONE in allow,
        "listed": [who for who in allow if who not in {ANYONE, DELEGATED}],
        "idempotent": idempotent,
        "detach": detach,
    }
    publication = _publication(capability, name, linked)
    with session.running_node() if detach else session.node(settled=True) as client:
        body["reference"] = capability if publication is None else _publish(client, session, publication)
        if detach:
            value = client.post("/v1/provide", body)
            session.show(value, lambda: [f"providing {capability}", f"offer     {value['offer_id']}"])
            return
        with client.lines("POST", "/v1/provide", body=body) as events:
            try:
                _report_calls(session, capability, allow, policy, events)
            except KeyboardInterrupt:
                session.note("no longer providing")
                return
    # The stream has no end of its own: the node has stopped.
    raise LocalError(
        "node-ended", "the node ended", cure="start it again with `bnw run`", exit_status=ExitStatus.UNREACHABLE
    )


def _publication(capability: str, name: str | None, linked: tuple[Path, ...]) -> Publication | None:
    """What to publish first, if `capability` is a file."""
    path = Path(capability)
    if name is None and not linked and not path.is_file():
        return None
    return Publication.read(name or path.name.partition(".")[0], path, linked)


def _publish(client: ApiClient, session: Session, publication: Publication) -> str:
    manifest = publication.publish(client)
    session.note(f"published {manifest['name']}, manifest {manifest['manifest_id']}")
    published: str = manifest["manifest_id"]
    return published


def _checked_policy(path: Path) -> Path:
    """The absolute path of a policy file that can be read as one now."""
    from bnw.node.policy_file import read_policy

    read_policy(path)
    return path.absolute()


def _report_calls(
    session: Session,
    capability: str,
    allow: tuple[str, ...],
    policy: Path | None,
    events: Iterator[dict[str, Any]],
) -> None:
    import json

    allowed = "anyone may call" if ANYONE in allow else f"{len(set(allow) - {DELEGATED})} identities may call"
    if DELEGATED in allow:
        allowed += ", and those who show a delegation"
    if policy is not None:
        allowed = f"{policy} says who may call"
    elif not allow:
        allowed = "nobody may call yet (see --allow)"
    for event in events:
        if session.as_json:
            # The one command that never ends by itself prints one document per event.
            click.echo(json.dumps(event))
        elif event["event"] == "providing":
            click.echo(f"providing {capability}; {allowed}; Ctrl-C ends it")
        else:
            code = f" ({event['code']})" if event["code"] else ""
            click.echo(f"call {event['invocation_id'][:16]} from {event['requester']}: {event['status']}{code}")


def _arguments(command: str) -> list[str]:
    """The words of the command, its program found on the PATH or from here."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise _bad_program(command, str(error)) from None
    program = shutil.which(words[0]) if words else None
    if program is None:
        raise _bad_program(command, "there is no such program")
    return [str(Path(program).absolute()), *words[1:]]


def _bad_program(command: str, cause: str) -> LocalError:
    return LocalError(
        "program",
        cause,
        place=f"--exec {command!r}",
        cure="name a program on the PATH, or give its path",
        exit_status=ExitStatus.USAGE,
    )


def _environment(variables: tuple[str, ...]) -> dict[str, str]:
    environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    for variable in variables:
        name, given, value = variable.partition("=")
        if not given and name not in os.environ:
            raise LocalError(
                "variable",
                "is not set here",
                place=f"--env {name}",
                cure=f"set it, or give its value with --env {name}=VALUE",
                exit_status=ExitStatus.USAGE,
            )
        environment[name] = value if given else os.environ[name]
    return environment


@click.command(short_help="Call a capability and print its verified output.")
@click.argument("capability")
@click.option("--input", "source", type=file_path, help="A file with the input; - is standard input.")
@click.option("--data", help="The input itself.")
@click.option("--media-type", help="Of the input. Default: from the file's name, or what the descriptor names first.")
@click.option("--output", type=file_path, help="A file for the output, instead of standard output.")
@click.option("--force", is_flag=True, help="Write over an existing file.")
@click.option("--max-output", type=Size(), help=MAX_OUTPUT_HELP)
@click.option("--provider", type=identity, metavar="IDENTITY", help="Ask only this provider.")
@click.option("--public", is_flag=True, help="Send the input unsealed, readable by every carrier.")
@click.option("--deadline", type=Duration(), default="2m", show_default=True, help="When to give up.")
@click.option("--inactivity", type=Duration(), help="The longest that the handler may report nothing.")
@click.option("--any-order", is_flag=True, help="Ask the next provider even if the one before may have run the call.")
@click.option("--patience", type=Duration(), default="5s", show_default=True, help="How long to look for a provider.")
@click.option("--detach", is_flag=True, help="Wait for no answer; `bnw invocation wait` fetches it later.")
@node_command
def invoke(
    session: Session,
    capability: str,
    source: Path | None,
    data: str | None,
    media_type: str | None,
    output: Path | None,
    force: bool,
    max_output: int | None,
    provider: str | None,
    public: bool,
    deadline: int,
    inactivity: int | None,
    any_order: bool,
    patience: int,
    detach: bool,
) -> None:
    """Call CAPABILITY, a name or a manifest id, and print its verified output. `bnw invocation wait` takes up a call
    that was broken off.

    \b
    Example: bnw invoke finance/lookup --data '{"symbol": "IBM", "month": "2005-03"}'
    """
    if (source is None) == (data is None):
        raise click.UsageError("give the input with either --input or --data")
    if output is not None:
        check_new(output, force=force)
    large = None if source is None else _large_file(source)
    if data is not None:
        content = os.fsencode(data)
    else:
        content = b"" if large is not None else read_file(source or Path("-"), MAX_PAYLOAD_IN_MEMORY)
    name = None if source is None or str(source) == "-" else source.name
    media_type = media_type or (None if name is None else mimetypes.guess_type(name)[0])
    if media_type == "application/json" and large is None:
        place = "--data" if source is None else str(source)
        check_json(content, place, cure="mend it, or say what it is with --media-type")
    parameters: dict[str, Any] = {
        "reference": capability,
        "media_type": media_type,
        "name": name,
        "input_file": large,
        "max_output": max_output,
        "provider": provider,
        "public": public,
        "deadline_ms": deadline,
        "inactivity_ms": inactivity,
        "any_order": any_order,
        "patience_ms": patience,
        "detach": detach,
    }
    with (
        session.node(settled=True) as client,
        client.lines("POST", "/v1/invoke", data=content, **parameters) as events,
    ):
        result = follow(session, events)
        if "confirmed" in result:
            _show_detached(session, result)
        else:
            show_result(session, client, result, output, force=force)


def _large_file(source: Path) -> str | None:
    """The absolute path of a plain file that does not fit in memory; the node reads it by itself.

    Raises `LocalError`: `unreadable`, or `too-large` above 1 GiB.
    """
    if str(source) == "-" or not source.is_file() or source.stat().st_size <= MAX_PAYLOAD_IN_MEMORY:
        return None
    check_readable(source, MAX_PAYLOAD)
    return str(source.absolute())


def _show_detached(session: Session, result: dict[str, Any]) -> None:
    id = result["invocation_id"]
    where = "a mailbox of the provider" if result["confirmed"] == "mailed" else "the provider"
    session.show(result, lambda: [f"{where} has the call; its answer comes with: bnw invocation wait {id[:16]}"])


def follow(session: Session, events: Iterator[dict[str, Any]]) -> dict[str, Any]:
    """Tell each step as it happens; the result."""
    for event in events:
        if event.pop("event") in {"result", "detached"}:
            return event
        session.note(step_text(event))
    raise LocalError(
        "node-ended",
        "the node ended before the call did",
        cure="start it again with `bnw run`; the call may have run",
        exit_status=ExitStatus.UNREACHABLE,
    )


def show_result(
    session: Session, client: ApiClient, result: dict[str, Any], output: Path | None, *, force: bool
) -> None:
    """Print or write the output; for a call without one, say why, and end with the status that fits."""
    if result["status"] != "completed":
        _end_without_output(session, result)
    session.note(f"completed; receipt {result['receipt_id']} verified")
    if "output_base64" not in result:
        _show_large(session, client, result, output, force=force)
        return
    encoded = result.pop("output_base64")
    data = base64.b64decode(encoded)
    error = None if output is None else _write_output(output, data, force=force)
    if output is not None and error is None:
        result["output_file"] = str(output)
        result.pop("output")
        session.note(f"{output}: {size_text(len(data))}")
    elif result["output"] is None:
        result["output_base64"] = encoded
    if session.as_json:
        session.show(result if error is None else {**result, "error": error.to_json()}, list)
    elif output is None or error is not None:
        print_bytes(data)
    if error is not None:
        if not session.as_json:
            report(error, as_json=False)
        sys.exit(int(error.exit_status))


def _show_large(
    session: Session, client: ApiClient, result: dict[str, Any], output: Path | None, *, force: bool
) -> None:
    """Stream an output that is too large for memory. The node keeps it until it is in a file."""
    call, size = f"/v1/invocations/{result['invocation_id']}", result["output_bytes"]
    if output is not None:
        write_pieces(output, client.pieces(f"{call}/output", size), force=force)
        client.post(f"{call}/output/let-go")
        result["output_file"] = str(output)
        session.note(f"{output}: {size_text(size)}")
    if session.as_json:
        session.show(result, list)
    elif output is None:
        print_pieces(client.pieces(f"{call}/output", size))


def _write_output(output: Path, data: bytes, *, force: bool) -> LocalError | None:
    """Why the output could not be written, if so. It has been paid for with a call, so it is printed then."""
    try:
        write_file(output, data, force=force)
    except LocalError as error:
        return LocalError(
            error.code,
            f"{error.cause}; the output was printed instead",
            place=error.place,
            cure=error.cure,
            exit_status=error.exit_status,
        )
    return None


def _end_without_output(session: Session, result: dict[str, Any]) -> NoReturn:
    """Say why, in the provider's words, which may be anything, and end with the status that fits."""
    problem = result["problem"] or {}
    status = result["status"]
    title = problem.get("title") or "the provider gave no reason"
    error = RemoteError(
        result["code"] or status,
        f"{status}: {title} [{result['code'] or status}]",
        place=f"provider {result['provider']}",
        cure=CURES.get(status),
        exit_status=ExitStatus.DEADLINE if status == "expired" else ExitStatus.REFUSED,
    )
    if session.as_json:
        session.show({**result, "error": error.to_json()}, list)
    else:
        report(error, as_json=False)
    faults = problem.get("errors")
    for fault in faults if isinstance(faults, list) else ():
        if isinstance(fault, dict):
            session.note(f"  {fault.get('pointer') or '(document)'}: {fault.get('detail')}")
    for line in str(problem.get("detail") or "").strip().splitlines():
        session.note(f"  {line}")
    sys.exit(int(error.exit_status))
