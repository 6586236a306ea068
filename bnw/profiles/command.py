"""`bnw-profile`: judge descriptors on the command line, without a node.

Reads a file or, with `-` or nothing, standard input. Exit status: 0 valid or done; 1 invalid or refused, with every
error located; 2 wrong usage or unreadable input. With `--json`, standard output is one JSON document.
"""

from __future__ import annotations

import json
import sys
import time  # noqa: TID251 - a program of its own, with no node to hand it the time; dates in descriptors need today's
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import click

import bnw
from bnw.profiles.capability.parse import IDENTIFIER
from bnw.profiles.contract import Description, LocatedError, PayloadLimits
from bnw.profiles.json_reader import salvage_json
from bnw.profiles.openwop.plugin import IDENTIFIER as OPENWOP
from bnw.profiles.openwop.plugin import OpenWopPlugin
from bnw.profiles.service import ProfileService
from bnw.wire.content_id import ContentId, content_id, content_id_text
from bnw.wire.errors import ExitStatus, LocalError
from bnw.wire.limits import MAX_BLOB, MAX_DESCRIPTOR, MAX_PAYLOAD
from bnw.wire.printable import printable

_OPENWOP_MARKS: Final = ("protocolVersion", "protocolVersions", "supportedEnvelopes", "schemaVersions")

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
file_argument = click.argument("file", default="-", metavar="[FILE]")
at_option = click.option(
    "--at", type=click.DateTime(["%Y-%m-%d"]), help="Judge dates as of this day instead of today.", metavar="DAY"
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(bnw.__version__, prog_name="bnw-profile")
def main() -> None:
    """Check, inspect and begin capability descriptors.

    FILE is a path, or - (the default) for standard input.
    """


@main.command()
@file_argument
@click.option("--profile", metavar="ID", help="Judge by this profile, whatever the document claims to be.")
@at_option
@json_option
def validate(file: str, profile: str | None, at: datetime | None, as_json: bool) -> None:
    """Check a descriptor; print its content id, or every error with its place."""
    with _reporting(as_json):
        data = _read(file, MAX_DESCRIPTOR)
        with _service(at) as service:
            description = _judge(service, data, profile)
        if as_json:
            _print_json({"valid": description.valid, "id": content_id_text(content_id(data)), **_verdict(description)})
        else:
            _print_verdict(description)
            if description.valid:
                click.echo(f"valid {printable(description.profile)}")
                click.echo(content_id_text(content_id(data)))
        _exit_unless(description.valid)


@main.command()
@file_argument
@at_option
@json_option
def inspect(file: str, at: datetime | None, as_json: bool) -> None:
    """Show what a descriptor says. One of an unknown format is opaque bytes, which is no error."""
    with _reporting(as_json):
        data = _read(file, MAX_DESCRIPTOR)
        with _service(at) as service:
            description = service.describe(data)
        identity = {"id": content_id_text(content_id(data)), "size": len(data)}
        if description is None:
            if as_json:
                _print_json({**identity, "profile": None})
            else:
                _print_facts(
                    [("profile", "unknown: opaque bytes"), ("id", identity["id"]), ("size", f"{len(data)} bytes")]
                )
            return
        if as_json:
            _print_json({**identity, "valid": description.valid, **_verdict(description), **_content(description)})
        else:
            _print_verdict(description)
            facts: list[tuple[str, Any]] = [("profile", description.profile), ("id", identity["id"])]
            facts += [("size", f"{len(data)} bytes"), ("title", description.title)]
            facts += [(fact.label, fact.value) for fact in description.facts]
            _print_facts([fact for fact in facts if fact[1]])
        _exit_unless(description.valid)


@main.command()
@file_argument
@click.option("--schema", "schemas", multiple=True, metavar="FILE", help="A schema that the descriptor links to.")
@json_option
def template(file: str, schemas: tuple[str, ...], as_json: bool) -> None:
    """Print an input to start from, for a descriptor with its --schema, or for a JSON Schema itself."""
    with _reporting(as_json):
        data = _read(file, MAX_DESCRIPTOR)
        known = {content_id(blob): blob for blob in (_read(path, MAX_DESCRIPTOR) for path in schemas)}
        with _service(None) as service:
            description = service.describe(data)
            if description is None:
                known, data = {content_id(data): data}, _stand_in(content_id(data))
            elif not description.valid:
                _print_verdict(description)
                sys.exit(ExitStatus.REFUSED)
            elif not known:
                cure = "pass the input's schema with --schema FILE"
                raise LocalError("schema-missing", "a template is made from the input's JSON Schema", cure=cure)
            document = service.starter(data, known)
            failed = service.faults()
        if document is None:
            cause = failed[-1].message if failed else "no document could be built"
            raise LocalError(
                "no-template", cause, cure="give the schema a default or an example, or write the input by hand"
            )
        if as_json:
            _print_json({"template": json.loads(document)})
        else:
            click.echo(document.decode())


@main.command()
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
@click.option("--profile", metavar="ID", default=IDENTIFIER, show_default=True, help="The format to begin with.")
@click.option("--bare", is_flag=True, help="Leave the comments out: strict JSON.")
@click.option("--force", is_flag=True, help="Overwrite FILE.")
@json_option
def new(file: Path | None, profile: str, bare: bool, force: bool, as_json: bool) -> None:
    """Write a commented starting point to FILE, or to standard output.

    Lines that begin with // are comments; `bnw-profile strip` removes them.
    """
    with _reporting(as_json):
        with _service(None) as service:
            draft = service.draft(profile)
        if draft is None:
            cure = "see `bnw-profile list`"
            raise LocalError("no-draft", f"no profile {profile!r} offers a starting point", cure=cure)
        text = _without_comments(draft) if bare else draft
        if file is not None:
            if file.exists() and not force:
                raise LocalError("exists", f"{file} is there already", cure="use --force, or another name")
            file.write_text(text, encoding="utf-8")
        if as_json:
            _print_json({"profile": profile, "draft": draft, "document": json.loads(_without_comments(draft))})
        elif file is None:
            click.echo(text, nl=False)


@main.command(name="list")
@json_option
def list_(as_json: bool) -> None:
    """List the profiles that are installed."""
    with _reporting(as_json):
        with _service(None) as service:
            plugins = service.plugins()
        if as_json:
            rows = [(one.identifier, one.name, one.distribution, one.last_failure) for one in plugins]
            names = ("profile", "plugin", "distribution", "failure")
            _print_json({"profiles": [dict(zip(names, row, strict=True)) for row in rows]})
            return
        width = max(len(one.identifier or one.name) for one in plugins)
        for one in plugins:
            failure = f"  {one.last_failure}" if one.last_failure else ""
            click.echo(printable(f"{one.identifier or one.name:<{width}}  {one.distribution}{failure}"))


@main.command(name="id")
@file_argument
@json_option
def id_(file: str, as_json: bool) -> None:
    """Print the content id of a file, whatever is in it."""
    with _reporting(as_json):
        data = _read(file, MAX_BLOB)
        if len(data) > MAX_BLOB:
            raise LocalError(
                "too-large", f"more than {MAX_BLOB:,} bytes; larger data has no single content id", place=file
            )
        text = content_id_text(content_id(data))
        if as_json:
            _print_json({"id": text, "size": len(data)})
        else:
            click.echo(text)


@main.command()
@file_argument
def strip(file: str) -> None:
    """Print a draft without its comment lines (those that begin with //)."""
    with _reporting(False):
        data = _read(file, MAX_DESCRIPTOR)
        try:
            click.echo(_without_comments(data.decode()), nl=False)
        except UnicodeDecodeError:
            raise LocalError("json-encoding", "is not UTF-8", place=file, exit_status=ExitStatus.USAGE) from None


def _judge(service: ProfileService, data: bytes, profile: str | None) -> Description:
    """The verdict of the named profile, of the one that claims the document, or of the one it looks like most."""
    if profile is not None:
        description = service.read_as(data, profile)
        if description is None:
            cure = "see `bnw-profile list`"
            raise LocalError(
                "no-profile", f"no profile {profile!r} is installed", cure=cure, exit_status=ExitStatus.USAGE
            )
        return description
    description = service.describe(data)
    if description is not None:
        return description
    value = salvage_json(data)[0]
    likely = IDENTIFIER
    if isinstance(value, dict) and "profile" not in value:
        known = sum(mark in value for mark in _OPENWOP_MARKS) > 0 or OpenWopPlugin().claims(data)
        likely = OPENWOP if known else IDENTIFIER
    description = service.read_as(data, likely)
    assert description is not None  # both are BNW's own
    return description


def _stand_in(schema: ContentId) -> bytes:
    """A descriptor whose input has `schema`, to make a template of a schema alone."""
    payload = {"media_types": ["application/json"], "schema": None, "max_bytes": MAX_PAYLOAD, "privacy": "either"}
    operation = {"name": "any", "input": {**payload, "schema": content_id_text(schema)}, "output": payload}
    document = {"profile": IDENTIFIER, "name": "Any", "description": "", "operation": operation}
    return json.dumps(document).encode()


def _without_comments(draft: str) -> str:
    # No JSON string can begin a line with //, for none can hold a line break.
    return "".join(line for line in draft.splitlines(keepends=True) if not line.lstrip().startswith("//"))


def _service(at: datetime | None) -> ProfileService:
    now = time.time() if at is None else at.replace(tzinfo=UTC).timestamp()
    return ProfileService(now_ms=lambda: int(now * 1000))


def _read(path: str, limit: int) -> bytes:
    """At most one byte more than `limit`, so that whoever judges the bytes sees that they are too many."""
    try:
        if path == "-":
            return sys.stdin.buffer.read(limit + 1)
        with Path(path).open("rb") as file:
            return file.read(limit + 1)
    except OSError as error:
        cause = error.strerror or str(error)
        raise LocalError("unreadable", cause, place=path, exit_status=ExitStatus.USAGE) from None


@contextmanager
def _reporting(as_json: bool) -> Iterator[None]:
    """End with an error's message and exit status."""
    try:
        yield
    except LocalError as error:
        if as_json:
            _print_json({"error": error.to_json()})
        else:
            click.echo(f"bnw-profile: {printable(str(error))}", err=True)
        sys.exit(error.exit_status)


def _exit_unless(valid: bool) -> None:
    if not valid:
        sys.exit(ExitStatus.REFUSED)


def _verdict(description: Description) -> dict[str, Any]:
    return {
        "profile": description.profile,
        "errors": [error.to_json() for error in description.errors],
        "warnings": [warning.to_json() for warning in description.warnings],
    }


def _content(description: Description) -> dict[str, Any]:
    limits = description.limits
    return {
        "title": description.title,
        "facts": {fact.label: fact.value for fact in description.facts},
        "links": [content_id_text(link) for link in description.links],
        "limits": None
        if limits is None
        else {"operation": limits.operation, "input": _payload(limits.input), "output": _payload(limits.output)},
    }


def _payload(limits: PayloadLimits) -> dict[str, Any]:
    schema = None if limits.schema is None else content_id_text(limits.schema)
    return {
        "media_types": list(limits.media_types),
        "max_bytes": limits.max_bytes,
        "privacy": limits.privacy,
        "schema": schema,
    }


def _print_verdict(description: Description) -> None:
    """Errors and warnings, one a line."""
    for kind, notes in (("error", description.errors), ("warning", description.warnings)):
        for note in notes:
            click.echo(note_line(kind, note))
    if description.errors:
        count = len(description.errors)
        click.echo(f"invalid {printable(description.profile)}: {count} error{'s' if count > 1 else ''}")


def note_line(kind: str, note: LocatedError) -> str:
    """An error or a warning (`kind`) for people, on one line."""
    hint = f" ({printable(note.hint)})" if note.hint else ""
    return (
        f"{kind}: {printable(note.pointer) or '(document)'}: {printable(note.message)}{hint} [{printable(note.code)}]"
    )


def _print_facts(facts: list[tuple[str, Any]]) -> None:
    width = max(len(label) for label, _ in facts)
    for label, value in facts:
        shown = ", ".join(value) if isinstance(value, tuple) else str(value)
        click.echo(f"{printable(label):<{width}}  {printable(shown)}")


def _print_json(value: dict[str, Any]) -> None:
    click.echo(json.dumps(value, ensure_ascii=False, indent=2))
