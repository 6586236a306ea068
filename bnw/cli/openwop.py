"""Commands about OpenWOP hosts: `bnw openwop import`."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from bnw.cli.files import read_file
from bnw.cli.session import Session, node_command
from bnw.cli.units import Duration, size_text
from bnw.wire.errors import ExitStatus, InvalidError, LocalError
from bnw.wire.limits import MAX_DESCRIPTOR, SECOND
from bnw.wire.names import MAX_NAME, check_name

if TYPE_CHECKING:
    from bnw.profiles.contract import Description

PREFIX = "openwop/"
MAX_REDIRECTS = 5


@click.group()
def openwop() -> None:
    """Bring OpenWOP hosts into the catalog."""


@openwop.command(name="import", short_help="Publish a host's capabilities document.")
@click.argument("source", metavar="URL|FILE")
@click.option("--name", help="Publish under this name; default: openwop/ and the host or the file's name.")
@click.option("--allow-private", is_flag=True, help="Fetch from a private address too, such as this machine.")
@click.option(
    "--redirects", type=click.IntRange(0, MAX_REDIRECTS), default=0, show_default=True, help="Redirects to follow."
)
@click.option("--timeout", type=Duration(), default="10s", show_default=True, help="Time to fetch it in.")
@node_command
def import_(session: Session, source: str, name: str | None, allow_private: bool, redirects: int, timeout: int) -> None:
    """Publish a host's capabilities document, signed by this home's identity.

    With a URL, the document is fetched from the host's /.well-known/openwop; a FILE is read, and - is standard input.
    It must be valid. Importing the same again changes nothing; a changed document becomes the new version.

    \b
    Example: bnw openwop import https://host.example
    """
    session.require_home()
    name = _default_name(source) if name is None else _checked(name)
    if _is_url(source):
        data = _fetch(source, allow_private=allow_private, redirects=redirects, timeout=timeout)
    elif source != "-" and not Path(source).exists():
        cure = "check the path; a host's URL begins with https://"
        raise LocalError("unreadable", "there is no such file", place=source, cure=cure, exit_status=ExitStatus.USAGE)
    else:
        data = read_file(Path(source), MAX_DESCRIPTOR)
    description = _judge(session, source, data)
    with session.node(settled=True, spreading=True) as client:
        manifest = client.post_bytes("/v1/catalog", data, name=name)
    facts = {fact.label: fact.value for fact in description.facts}
    value = {
        **manifest,
        "source": source,
        "size": len(data),
        "title": description.title,
        "facts": facts,
        "warnings": [warning.to_json() for warning in description.warnings],
    }
    session.show(value, lambda: _published(value))


def _is_url(source: str) -> bool:
    return "://" in source


def _fetch(url: str, *, allow_private: bool, redirects: int, timeout: int) -> bytes:
    import anyio

    from bnw.profiles.openwop.fetch import fetch_capabilities

    async def fetch() -> bytes:
        return await fetch_capabilities(url, allow_private=allow_private, redirects=redirects, timeout=timeout / SECOND)

    return anyio.run(fetch)


def _judge(session: Session, source: str, data: bytes) -> Description:
    """What the OpenWOP profile says of the document; ends the command with every error if it is not valid."""
    from bnw.node.environment import SystemEnvironment
    from bnw.profiles.command import note_line
    from bnw.profiles.openwop.plugin import IDENTIFIER
    from bnw.profiles.service import ProfileService

    with ProfileService(now_ms=SystemEnvironment().now_ms) as service:
        description = service.describe(data)
        if description is None or description.profile != IDENTIFIER:
            # Not claimed as one; asking all the same tells what is wrong with it.
            description = service.read_as(data, IDENTIFIER)
    assert description is not None  # the profile is BNW's own
    for warning in description.warnings:
        session.note(note_line("warning", warning))
    if description.valid:
        return description
    count = len(description.errors)
    error = LocalError(
        "invalid-document",
        f"not a valid OpenWOP capabilities document: {count} error{'s' if count > 1 else ''}",
        place=source,
        cure="nothing was published; the host's operator can mend it",
    )
    errors = [fault.to_json() for fault in description.errors]
    lines = [note_line("error", fault) for fault in description.errors]
    session.show({"error": error.to_json(), "errors": errors}, lambda: lines)
    session.note(f"bnw: {error}")
    sys.exit(int(ExitStatus.REFUSED))


def _checked(name: str) -> str:
    try:
        return check_name(name, "capability name")
    except InvalidError as error:
        raise error.at("--name") from None


def _default_name(source: str) -> str:
    """`openwop/` and what tells the host from others, in the alphabet of names. Raises `LocalError` (`name`)."""
    if _is_url(source):
        from bnw.profiles.openwop.fetch import WELL_KNOWN, document_url

        parts = urlsplit(document_url(source))
        words = [parts.netloc, *parts.path.removesuffix(WELL_KNOWN).split("/")]
    else:
        words = [Path(source).stem]
    plain = (re.sub(r"[^a-z0-9._-]+", "-", word.lower()).strip("-._") for word in words)
    name = PREFIX + "/".join(word for word in plain if word)
    if name == PREFIX or len(name) > MAX_NAME:
        cause = "no name can be made of the source"
        raise LocalError("name", cause, place=source, cure="choose one with --name", exit_status=ExitStatus.USAGE)
    return name


def _published(value: dict[str, Any]) -> list[str]:
    from bnw.cli.tables import facts

    pairs = [("published", value["name"]), ("manifest", value["manifest_id"]), ("document", value["descriptor"])]
    pairs += [("size", size_text(value["size"])), ("title", value["title"])]
    for label, content in value["facts"].items():
        pairs.append((label, content if isinstance(content, str) else ", ".join(content)))
    return facts([(label, text) for label, text in pairs if text])
