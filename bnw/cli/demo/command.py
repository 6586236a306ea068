"""The command `bnw demo`."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bnw.cli.parameters import any_path
from bnw.cli.reporting import signals_held
from bnw.cli.session import Session, node_command
from bnw.cli.units import size_text
from bnw.wire.errors import ExitStatus, LocalError

if TYPE_CHECKING:
    from bnw.cli.demo.scene import Outcome


KEEP_CURE = "name a directory that is empty or does not exist yet"


@click.command(short_help="Watch three nodes find and privately call a capability.")
@click.option("--keep", type=any_path, metavar="DIR", help="Keep the three homes in this directory.")
@click.option("--offline", is_flag=True, help="Requester and provider are never online together; a mailbox is.")
@node_command
def demo(session: Session, keep: Path | None, offline: bool) -> None:
    """Run three real nodes on this machine. One publishes and provides a price lookup, one only carries, one finds and
    calls it. Ends by searching all that the carrier keeps for question and answer. Uses no home of yours.

    With --offline the carrier is a mailbox: the requester asks while the provider is away, and leaves; the provider
    comes, answers, and leaves; the requester comes back and opens the answer.

    \b
    Example: bnw demo --keep /tmp/bnw-demo
    """
    from bnw.cli.demo.example import find_example
    from bnw.cli.demo.offline import play_offline
    from bnw.cli.demo.scene import play

    example = find_example()
    with _place(keep) as name:
        outcome = (play_offline if offline else play)(Path(name), example, _teller(session))
    searched = outcome.searches[-1]
    output = outcome.result.get("output")
    value = {
        "ok": outcome.ok,
        "manifest_id": outcome.manifest_id,
        "invocation_id": outcome.result["invocation_id"],
        "receipt_id": outcome.result["receipt_id"],
        "status": outcome.result["status"],
        "code": outcome.result["code"],
        "output": output,
        "receipt_verified": outcome.result["receipt_verified"],
        "carrier_saw_plaintext": outcome.carrier_saw_plaintext,
        "searched_files": searched.files,
        "searched_bytes": searched.size,
        "seconds": round(outcome.seconds, 2),
    }
    session.show(value, lambda: _ending(outcome, keep))
    if not outcome.ok:
        sys.exit(int(ExitStatus.REFUSED))


def _place(keep: Path | None) -> AbstractContextManager[str]:
    if keep is None:
        return _temporary_directory()
    try:
        keep.mkdir(mode=0o700, parents=True, exist_ok=True)
        used = any(keep.iterdir())
    except OSError as error:
        cause = error.strerror or str(error)
        raise LocalError("keep", cause, place=str(keep), cure=KEEP_CURE, exit_status=ExitStatus.USAGE) from None
    if used:
        raise LocalError("keep", "is not empty", place=str(keep), cure=KEEP_CURE, exit_status=ExitStatus.USAGE)
    return nullcontext(str(keep.resolve()))


@contextmanager
def _temporary_directory() -> Iterator[str]:
    """Taken away whenever Ctrl-C comes, also while it is made or taken away."""
    name = None
    try:
        with signals_held():
            name = tempfile.mkdtemp(prefix="bnw-demo-")
        yield name
    finally:
        with signals_held():
            if name is not None:
                shutil.rmtree(name)


def _teller(session: Session) -> Callable[[str], None]:
    count = 0

    def tell(text: str) -> None:
        nonlocal count
        count += 1
        session.note(f"{count:>2}. {text}")

    return tell


def _ending(outcome: Outcome, keep: Path | None) -> list[str]:
    result, output, searched = outcome.result, outcome.result.get("output"), outcome.searches[-1]
    lines = [""]
    if isinstance(output, dict):
        price = f"{output['close']} {output['currency']}"
        lines.append(
            f"answer    {output['symbol']} closed at {price} in {output['month']} (source: {output['source']})"
        )
    else:
        lines.append(f"answer    none: {result['status']} [{result['code']}]")
    lines.append(f"receipt   {result['receipt_id']}, signed by {result['provider']}, verified")
    where = f"{searched.files} files, {size_text(searched.size)}"
    if outcome.carrier_saw_plaintext:
        lines.append(f"carrier   HOLDS PLAINTEXT, in {', '.join(str(path) for path in searched.found)}")
    elif not outcome.control_found:
        lines.append(
            f"carrier   the search found not even the capability's public name ({where}), so it proves nothing"
        )
    else:
        lines.append(
            f"carrier   holds the capability's public name, but neither question nor answer ({where} searched)"
        )
    if keep is not None:
        lines.append(f"homes     {keep}")
    lines.append(f"{'done' if outcome.ok else 'FAILED'} in {outcome.seconds:.1f} s")
    return lines
