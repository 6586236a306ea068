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
from typing import TYPE_CHECKING, Any

import click

from bnw.cli.catalog import file_path, publish_files, with_option
from bnw.cli.files import read_file, write_file
from bnw.cli.session import Session, node_command
from bnw.cli.units import Duration, size_text
from bnw.wire.errors import ExitStatus, LocalError
from bnw.wire.limits import MAX_PAYLOAD_IN_MEMORY

if TYPE_CHECKING:
    from bnw.api.client import ApiClient

PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TZ")
"""Variables that a program always sees. Everything else, keys above all, only with --env."""
EXIT_STATUS = {"completed": ExitStatus.DONE, "expired": ExitStatus.DEADLINE}


@click.command()
@click.argument("capability")
@click.option("--exec", "command", metavar="COMMAND", help="The program to run for each call.")
@click.option("--url", help="A service on this machine to ask instead (http://127.0.0.1:PORT/...).")
@click.option("--allow", multiple=True, metavar="WHO", help="'anyone', 'delegated' or a did:key. Default: nobody.")
@click.option("--policy", "policy", type=file_path, help="A policy file, read again whenever it changes.")
@click.option("--env", "variables", multiple=True, metavar="NAME[=VALUE]", help="A variable that the program sees.")
@click.option("--name", help="Publish CAPABILITY, a file, under this name; default: the file's name up to a dot.")
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
        "delegated": "delegated" in allow,
        "environment": _environment(variables),
        "directory": str(Path.cwd()),
        "anyone": "anyone" in allow,
        "listed": [who for who in allow if who not in {"anyone", "delegated"}],
        "idempotent": idempotent,
        "detach": detach,
    }
    with session.running_node() if detach else session.node(settled=True) as client:
        body["reference"] = _published(client, session, capability, name, linked)
        if detach:
            value = client.post("/v1/provide", body)
            session.show(value, lambda: [f"providing {capability}", f"offer     {value['offer_id']}"])
            return
        with client.lines("POST", "/v1/provide", body=body) as events:
            _report_calls(session, capability, allow, policy, events)
    # The stream has no end of its own: the node has stopped.
    raise LocalError(
        "node-ended", "the node ended", cure="start it again with `bnw run`", exit_status=ExitStatus.UNREACHABLE
    )


def _published(client: ApiClient, session: Session, capability: str, name: str | None, linked: tuple[Path, ...]) -> str:
    """What to provide: `capability`, or what publishing it as a file gives."""
    path = Path(capability)
    if name is None and not linked and not path.is_file():
        return capability
    manifest = publish_files(client, name or path.name.partition(".")[0], path, linked)
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

    allowed = "anyone may call" if "anyone" in allow else f"{len(set(allow) - {'delegated'})} identities may call"
    if "delegated" in allow:
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
            raise LocalError("variable", "is not set here", place=f"--env {name}", exit_status=ExitStatus.USAGE)
        environment[name] = value if given else os.environ[name]
    return environment


@click.command()
@click.argument("capability")
@click.option("--input", "source", type=file_path, help="A file with the input; - is standard input.")
@click.option("--data", help="The input itself.")
@click.option("--media-type", help="Of the input. Default: from the file's name, or what the descriptor names first.")
@click.option("--output", type=file_path, help="A file for the output, instead of standard output.")
@click.option("--force", is_flag=True, help="Write over an existing file.")
@click.option("--provider", metavar="IDENTITY", help="Ask only this provider.")
@click.option("--public", is_flag=True, help="Send the input unsealed, readable by every carrier.")
@click.option("--deadline", type=Duration(), default="2m", show_default=True, help="When to give up.")
@click.option("--inactivity", type=Duration(), help="The longest that the handler may report nothing.")
@click.option("--any-order", is_flag=True, help="Ask the next provider even if the one before may have run the call.")
@click.option("--patience", type=Duration(), default="5s", show_default=True, help="How long to look for a provider.")
@node_command
def invoke(
    session: Session,
    capability: str,
    source: Path | None,
    data: str | None,
    media_type: str | None,
    output: Path | None,
    force: bool,
    provider: str | None,
    public: bool,
    deadline: int,
    inactivity: int | None,
    any_order: bool,
    patience: int,
) -> None:
    """Call CAPABILITY, a name or a manifest id, and print its verified output. `bnw invocation wait` takes up a call
    that was broken off.

    \b
    Example: bnw invoke finance/lookup --data '{"symbol": "IBM", "month": "2005-03"}'
    """
    if (source is None) == (data is None):
        raise click.UsageError("give the input with either --input or --data")
    content = data.encode() if data is not None else read_file(source or Path("-"), MAX_PAYLOAD_IN_MEMORY)
    if output is not None and output.exists() and not force:
        # Found now rather than after the call.
        write_file(output, b"", force=False)
    named = source is not None and str(source) != "-"
    parameters: dict[str, Any] = {
        "reference": capability,
        "media_type": media_type or (mimetypes.guess_type(source.name)[0] if named and source else None),
        "name": source.name if named and source else None,
        "provider": provider,
        "public": public,
        "deadline_ms": deadline,
        "inactivity_ms": inactivity,
        "any_order": any_order,
        "patience_ms": patience,
    }
    with (
        session.node(settled=True) as client,
        client.lines("POST", "/v1/invoke", data=content, **parameters) as events,
    ):
        result = follow(session, events)
    show_result(session, result, output, force=force)


def follow(session: Session, events: Iterator[dict[str, Any]]) -> dict[str, Any]:
    """Tell each step as it happens; the result."""
    for event in events:
        if event.pop("event") == "result":
            return event
        session.note(step_text(event))
    raise LocalError(
        "node-ended",
        "the node ended before the call did",
        cure="start it again with `bnw run`; the call may have run",
        exit_status=ExitStatus.UNREACHABLE,
    )


def step_text(step: dict[str, Any]) -> str:
    """A step of a call in words."""
    match step["step"]:
        case "connected":
            return f"connected to provider {step['provider']}"
        case "found":
            return f"found manifest {step['manifest']}"
        case "signed":
            return f"sealed the input for it and signed invocation {step['invocation']}"
        case "delivered":
            return "delivered; waiting for the answer"
        case "waiting":
            return f"not delivered yet: {step['reason']}"
        case "answered":
            return f"answered: {step['status']}"
        case "progress":
            fraction = f" {float(step['fraction']):.0%}" if "fraction" in step else ""
            return f"progress: {step['stage']}{fraction} {step['note']}".rstrip()
        case "next":
            return f"{step['status']} [{step['code']}]; asking the next provider"
        case other:
            return str(other)


def show_result(session: Session, result: dict[str, Any], output: Path | None, *, force: bool) -> None:
    data = base64.b64decode(result.pop("output_base64", ""))
    completed = result["status"] == "completed"
    if completed and output is not None:
        write_file(output, data, force=force)
        result["output_file"] = str(output)
        result.pop("output")
    elif completed and result["output"] is None:
        result["output_base64"] = base64.b64encode(data).decode()
    if session.as_json:
        session.show(result, list)
    elif completed:
        session.note(f"completed; receipt {result['receipt_id']} verified")
        if output is None:
            sys.stdout.buffer.write(data)
            if sys.stdout.isatty() and not data.endswith(b"\n"):
                sys.stdout.buffer.write(b"\n")
        else:
            session.note(f"{output}: {size_text(len(data))}")
    if not completed:
        _end_without_output(session, result)


def _end_without_output(session: Session, result: dict[str, Any]) -> None:
    """Say why, in the provider's words, which may be anything, and end with the status that fits."""
    problem = result["problem"] or {}
    session.note(f"{result['status']}: {problem.get('title') or 'the provider gave no reason'} [{result['code']}]")
    errors = problem.get("errors")
    for error in errors if isinstance(errors, list) else ():
        if isinstance(error, dict):
            session.note(f"  {error.get('pointer') or '(document)'}: {error.get('detail')}")
    for line in str(problem.get("detail") or "").strip().splitlines():
        session.note(f"  {line}")
    sys.exit(int(EXIT_STATUS.get(result["status"], ExitStatus.REFUSED)))
