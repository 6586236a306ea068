"""Commands about the catalog: publish, withdraw, catalog, catalog-inspect."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import click

from bnw.cli.files import check_json, read_file
from bnw.cli.parameters import any_path, capability_name
from bnw.cli.session import Session, node_command
from bnw.cli.units import Duration, moment_text, size_text
from bnw.wire.errors import LocalError
from bnw.wire.limits import MAX_BLOB, MAX_DESCRIPTOR

if TYPE_CHECKING:
    from bnw.api.client import ApiClient

file_path = any_path
with_option = click.option(
    "--with", "linked", multiple=True, type=file_path, metavar="FILE", help="A file that the descriptor links to."
)


@dataclass(frozen=True, slots=True)
class Publication:
    """What there is to publish, read from files before a node is asked to."""

    name: str
    descriptor: bytes = field(repr=False)
    linked: tuple[bytes, ...] = field(repr=False)
    provide: str = "publisher"

    @classmethod
    def read(
        cls,
        name: str,
        descriptor: Path,
        linked: tuple[Path, ...],
        *,
        provide: str = "publisher",
        opaque: bool = False,
    ) -> Self:
        """Raises `LocalError`: `unreadable`, `too-large`, or `json`.

        A file that calls itself JSON and is none is a slip, which the network would carry as opaque bytes for a year.
        """
        data = read_file(descriptor, MAX_DESCRIPTOR)
        if descriptor.suffix == ".json" and not opaque:
            check_json(data, str(descriptor), cure="mend it; --opaque publishes the bytes as they are")
        return cls(name, data, tuple(read_file(path, MAX_BLOB) for path in linked), provide)

    def publish(self, client: ApiClient) -> dict[str, Any]:
        """The manifest as JSON."""
        for blob in self.linked:
            client.post_bytes("/v1/blobs", blob)
        return client.post_bytes("/v1/catalog", self.descriptor, name=self.name, provide=self.provide)


@click.command(short_help="Publish a descriptor under a name.")
@click.argument("name", type=capability_name)
@click.argument("descriptor", type=file_path)
@with_option
@click.option(
    "--provide",
    type=click.Choice(["publisher", "delegated", "anyone"]),
    default="publisher",
    show_default=True,
    help="Who may provide it.",
)
@click.option("--opaque", is_flag=True, help="Publish the bytes whatever they are.")
@node_command
def publish(
    session: Session, name: str, descriptor: Path, linked: tuple[Path, ...], provide: str, opaque: bool
) -> None:
    """Publish DESCRIPTOR, a file, under NAME. Publishing the same again changes nothing.

    \b
    Example: bnw publish finance/lookup lookup.profile.json --with input.schema.json --with output.schema.json
    """
    publication = Publication.read(name, descriptor, linked, provide=provide, opaque=opaque)
    with session.node(settled=True, spreading=True) as client:
        value = publication.publish(client)
    session.show(value, lambda: [f"published {value['name']}", f"manifest  {value['manifest_id']}"])


@click.command(short_help="Withdraw a capability that this home published.")
@click.argument("name", type=capability_name)
@node_command
def withdraw(session: Session, name: str) -> None:
    """Withdraw a capability that this home published.

    \b
    Example: bnw withdraw finance/lookup
    """
    with session.node(settled=True, spreading=True) as client:
        value = client.post("/v1/catalog/withdraw", {"name": name})
    session.show({"name": name, **value}, lambda: [f"withdrawn {name}"])


@click.command(short_help="List the capabilities that are published now.")
@click.option("--mine", is_flag=True, help="Only what this home published.")
@node_command
def catalog(session: Session, mine: bool) -> None:
    """List the capabilities that are published now.

    \b
    Example: bnw catalog --json
    """
    from bnw.cli.tables import table

    with session.node(settled=True) as client:
        value = client.get("/v1/catalog", mine=mine)
    found = value["capabilities"]

    def lines() -> list[str]:
        if not found:
            return ["the catalog is empty" if not mine else "this home has published nothing"]
        rows = [
            (
                entry["name"],
                str(entry["providers"]),
                moment_text(entry["expires"]),
                entry["manifest_id"],
                entry["publisher"],
            )
            for entry in found
        ]
        return table(["NAME", "PROVIDERS", "UNTIL", "MANIFEST", "PUBLISHER"], rows)

    session.show(value, lines)


@click.command(name="catalog-inspect", short_help="Show everything about one capability.")
@click.argument("capability")
@click.option("--template", is_flag=True, help="Print only an input document to start from.")
@click.option("--patience", type=Duration(), default="5s", show_default=True, help="How long to wait to hear of it.")
@node_command
def catalog_inspect(session: Session, capability: str, template: bool, patience: int) -> None:
    """Show everything about CAPABILITY, a name or a manifest id.

    \b
    Example: bnw catalog-inspect finance/lookup --template > question.json
    """
    with session.node(settled=True) as client:
        value = client.get("/v1/catalog/inspect", reference=capability, patience_ms=patience)
    if not template:
        session.show(value, lambda: _inspection(value))
        return
    if value["input_template"] is None:
        raise LocalError(
            "no-template",
            "no input document can be derived from the descriptor",
            place=capability,
            cure="`bnw catalog-inspect` shows what is known about its input",
        )
    # The template is itself a JSON document, with or without --json.
    click.echo(json.dumps(value["input_template"], indent=2))


def _inspection(value: dict[str, Any]) -> list[str]:
    from bnw.cli.tables import facts

    pairs = [
        ("name", value["name"]),
        ("manifest", value["manifest_id"]),
        ("publisher", value["publisher"]),
        ("provided by", value["provide"]),
        ("until", moment_text(value["expires"])),
        ("descriptor", value["descriptor"]),
    ]
    profile = value["profile"]
    if profile is None:
        pairs.append(("profile", f"opaque: {size_text(value['descriptor_bytes'])} in no format known here"))
    else:
        pairs += [("profile", profile["identifier"]), ("title", profile["title"])]
        pairs += [(label, _joined(content)) for label, content in profile["facts"].items()]
        pairs += [("error", f"{error['pointer'] or '(document)'}: {error['message']}") for error in profile["errors"]]
    pairs += [("linked", f"{id} ({size_text(size)})") for id, size in value["linked"].items()]
    pairs += [("missing", id) for id in value["missing"]]
    pairs += [("offer", f"{offer['provider']} until {moment_text(offer['expires'])}") for offer in value["offers"]]
    if not value["offers"]:
        pairs.append(("offers", "nobody offers it now"))
    if value["input_template"] is not None:
        pairs.append(("input", json.dumps(value["input_template"])))
    return facts([(label, text) for label, text in pairs if text])


def _joined(content: str | list[str]) -> str:
    return content if isinstance(content, str) else ", ".join(content)
