"""Commands about blobs: add, get."""

from __future__ import annotations

from pathlib import Path

import click

from bnw.cli.files import check_new, check_readable, print_bytes, read_file, write_file
from bnw.cli.parameters import any_path, blob_id
from bnw.cli.session import Session, node_command
from bnw.cli.units import moment_text, size_text
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


@blob.command(name="list", short_help="List the blobs that are here, and why.")
@node_command
def list_(session: Session) -> None:
    """List the blobs that are here, with a reason why each is kept.

    \b
    Example: bnw blob list
    """
    from bnw.cli.tables import table

    with session.node() as client:
        value = client.get("/v1/blobs")

    def lines() -> list[str]:
        if not value["blobs"]:
            return ["no blobs"]
        rows = [(entry["id"], size_text(entry["size"]), _first_reason(entry["reasons"])) for entry in value["blobs"]]
        more = value["total"] - len(rows)
        return [*table(["ID", "SIZE", "WHY"], rows), *([f"and {more:,} more"] if more else [])]

    session.show(value, lines)


@blob.command(short_help="Explain why a blob is kept.")
@click.argument("id", type=blob_id)
@node_command
def why(session: Session, id: str) -> None:
    """Explain why the blob with content id ID is kept, or when it goes.

    \b
    Example: bnw blob why 8a4a2aa4ae6c6ce75eb17c65a2a59d1b0a52a0d0ae5f1b0a98d5a2b4d1f3c6e7
    """
    with session.node() as client:
        value = client.get(f"/v1/blobs/{id}/why")

    def lines() -> list[str]:
        if value["size"] is None:
            return ["it is not here", *(f"needed: {reason}" for reason in value["reasons"])]
        if value["reasons"]:
            return [f"kept: {reason}" for reason in value["reasons"]]
        grace = value["grace_ms"] // 60_000
        since = value["unused_since"]
        seen = "not seen so by a collection yet" if since is None else f"since {moment_text(since)}"
        return [f"nothing needs it ({seen}); it goes {grace} minutes after that was first seen"]

    session.show(value, lines)


@blob.command(short_help="Remove the blobs that nothing needs.")
@click.option("--dry-run", is_flag=True, help="Only say what would go.")
@node_command
def gc(session: Session, dry_run: bool) -> None:
    """Remove the blobs that nothing has needed for ten minutes. A running node does so by itself every ten minutes.

    \b
    Example: bnw blob gc --dry-run
    """
    with session.node() as client:
        value = client.post("/v1/blobs/gc", {"dry_run": dry_run})
    verb = "would remove" if dry_run else "removed"
    lines = [f"{verb} {value['removed']:,} blobs, {size_text(value['removed_bytes'])}"]
    if value["waiting"]:
        waiting = f"{value['waiting']:,} blobs, {size_text(value['waiting_bytes'])}"
        lines.append(f"not needed either, but not for {value['grace_ms'] // 60_000} minutes yet: {waiting}")
    session.show(value, lambda: lines)


@blob.command(short_help="Keep a blob that is here for good.")
@click.argument("id", type=blob_id)
@node_command
def pin(session: Session, id: str) -> None:
    """Keep the blob with content id ID until `bnw blob unpin`. `bnw blob add` pins what it adds.

    \b
    Example: bnw blob pin 8a4a2aa4ae6c6ce75eb17c65a2a59d1b0a52a0d0ae5f1b0a98d5a2b4d1f3c6e7
    """
    with session.node() as client:
        value = client.post("/v1/blobs/pin", {"id": id})
    session.show(value, lambda: [f"pinned {id}"])


@blob.command(short_help="Let a blob go once nothing else needs it.")
@click.argument("id", type=blob_id)
@node_command
def unpin(session: Session, id: str) -> None:
    """Keep the blob with content id ID only as long as something else needs it.

    \b
    Example: bnw blob unpin 8a4a2aa4ae6c6ce75eb17c65a2a59d1b0a52a0d0ae5f1b0a98d5a2b4d1f3c6e7
    """
    with session.node() as client:
        value = client.post("/v1/blobs/unpin", {"id": id})
    session.show(value, lambda: [f"unpinned {id}" if value["was_pinned"] else f"{id} was not pinned"])


def _first_reason(reasons: list[str]) -> str:
    if not reasons:
        return "(nothing needs it)"
    return reasons[0] if len(reasons) == 1 else f"{reasons[0]} (and {len(reasons) - 1} more reasons)"
