"""Commands about blobs: add, get."""

from __future__ import annotations

from pathlib import Path

import click

from bnw.cli.files import check_new, check_readable, print_bytes, read_file, write_file
from bnw.cli.parameters import any_path, blob_id
from bnw.cli.session import Session, node_command
from bnw.cli.units import size_text
from bnw.wire.limits import MAX_BLOB


@click.group(short_help="Keep and fetch blobs by content id.")
def blob() -> None:
    """Keep and fetch blobs by content id."""


@blob.command(short_help="Keep files and print their content ids.")
@click.argument("files", nargs=-1, required=True, type=any_path)
@node_command
def add(session: Session, files: tuple[Path, ...]) -> None:
    """Keep FILES, each of at most 16 MiB, and print their content ids. The node serves them to whoever asks.

    \b
    Example: bnw blob add input.schema.json output.schema.json
    """
    # One after the other, since a blob may have 16 MiB; a wrong path still shows before anything is started.
    for path in files:
        check_readable(path, MAX_BLOB)
    with session.node() as client:
        added = [{"file": str(path), **client.post_bytes("/v1/blobs", read_file(path, MAX_BLOB))} for path in files]
    session.show({"blobs": added}, lambda: [f"{entry['id']}  {entry['file']}" for entry in added])


@blob.command(short_help="Fetch a blob from this node or a connected peer.")
@click.argument("id", type=blob_id)
@click.option("--output", type=any_path, help="A file to write to, instead of standard output.")
@click.option("--force", is_flag=True, help="Write over an existing file.")
@node_command
def get(session: Session, id: str, output: Path | None, force: bool) -> None:
    """Fetch the blob with content id ID from this node or any connected peer.

    \b
    Example: bnw blob get 0aa1... --output input.schema.json
    """
    if session.as_json and output is None:
        raise click.UsageError("--json needs --output, for the blob itself goes to standard output otherwise")
    if output is not None:
        check_new(output, force=force)
    with session.node(settled=True) as client:
        data = client.get_bytes(f"/v1/blobs/{id}")
    if output is None:
        print_bytes(data)
        return
    write_file(output, data, force=force)
    value = {"id": id, "size": len(data), "file": str(output)}
    session.show(value, lambda: [f"{output}: {size_text(len(data))}"])
