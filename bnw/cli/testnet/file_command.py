"""The command `bnw testnet FILE`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bnw.cli.files import check_place, write_file
from bnw.cli.testnet.desk import Desk, testnet_command
from bnw.wire.errors import ExitStatus
from bnw.wire.printable import printable

if TYPE_CHECKING:
    from bnw.cli.testnet.playing import PlayedForReal, Progress, Tell
    from bnw.sim.play import Checked


@click.command(name="play", short_help="Play a scenario file with real nodes.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--seed", type=int, default=1, show_default=True, help="Decides network, workload and troubles.")
@click.option("--report", "report_file", type=click.Path(path_type=Path), help="Write an HTML page to this file.")
@testnet_command
def play_file(desk: Desk, file: Path, seed: int, report_file: Path | None) -> None:
    """Play a scenario FILE (docs/simulation.md) with real nodes over libp2p, and remove them.

    Says which parts of the file real processes cannot have. Ends with 1 if an expectation does not hold. `bnw testnet
    FILE` is the same.

    \b
    Example: bnw testnet simulations/smoke.toml --seed 7 --report out.html
    """
    from bnw.cli.testnet.playing import play_for_real
    from bnw.sim.result import Cost, to_json
    from bnw.sim.scenario import load_scenario

    if report_file is not None:
        check_place(report_file)
    scenario = load_scenario(file)
    with _progress(scenario.title) if _is_watched(desk) else nullcontext((desk.session.note, _no_progress)) as follow:
        tell, progress = follow
        result = play_for_real(scenario, seed, desk.directory, place=str(file), tell=tell, progress=progress)
    value = {
        **to_json(result.played, file.read_bytes(), Cost.so_far()),
        # Nothing of a real run comes again, so it has no trace to be compared by.
        "trace_hash": None,
        "real": True,
        "not_applied": result.not_applied,
    }
    if report_file is not None:
        from bnw.sim.report import report_page

        write_file(report_file, report_page(result.played, value).encode(), force=True)
    desk.session.show(value, lambda: _lines(result))
    if not result.played.passed:
        sys.exit(int(ExitStatus.REFUSED))


def _is_watched(desk: Desk) -> bool:
    return sys.stderr.isatty() and not desk.session.as_json


def _no_progress(now: float, end: float) -> None:
    return None


@contextmanager
def _progress(title: str) -> Iterator[tuple[Tell, Progress]]:
    """A bar on standard error: what goes on, how much of it is done, and how long it has taken in all."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.fields[title]}: {task.description}"),
        BarColumn(),
        MofNCompleteColumn(separator=" of "),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True, refresh_per_second=4) as bar:
        task = bar.add_task("making homes", total=None, title=printable(title))

        def tell(text: str) -> None:
            # How much there is of the new stage is not known yet; `update` cannot say so.
            bar.tasks[0].total = None
            bar.update(task, description=printable(text), completed=0)

        yield tell, lambda now, end: bar.update(task, completed=now, total=end)


def _lines(result: PlayedForReal) -> list[str]:
    from bnw.cli.tables import table
    from bnw.sim.report.words import metric_text

    played = result.played
    lines = [printable(played.scenario.title), ""]
    if played.checked:
        rows = [
            (_verdict(item), item.expect.metric, metric_text(item.expect.metric, item.value), _bounds(item))
            for item in played.checked
        ]
        lines += [*table(["", "EXPECTED", "VALUE", "BOUNDS"], rows), ""]
    if result.not_applied:
        lines += ["not as in the file:", *(f"  {text}" for text in result.not_applied), ""]
    lines += table(["METRIC", "VALUE"], [(name, metric_text(name, value)) for name, value in played.metrics.items()])
    return [*lines, "", "all that could be judged holds" if played.passed else "FAILED"]


def _verdict(item: Checked) -> str:
    return {None: "not judged", True: "ok", False: "FAILED"}[item.met]


def _bounds(item: Checked) -> str:
    from bnw.sim.report.words import bounds_text, seconds

    when = [f"at {seconds(item.at)}"] if item.expect.at is not None else []
    return ", ".join([*bounds_text(item.expect), *when])
