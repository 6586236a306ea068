"""The command `bnw testnet FILE`."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bnw.cli.files import write_file
from bnw.cli.testnet.desk import Desk, testnet_command
from bnw.wire.errors import ExitStatus

if TYPE_CHECKING:
    from bnw.cli.testnet.playing import PlayedForReal
    from bnw.sim.play import Checked, Played


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

    scenario = load_scenario(file)
    with click.progressbar(
        length=round(scenario.duration), label=scenario.title, file=sys.stderr, hidden=not _is_watched(desk)
    ) as bar:
        result = play_for_real(
            scenario,
            seed,
            desk.directory,
            place=str(file),
            tell=(lambda text: None) if _is_watched(desk) else desk.session.note,
            progress=lambda now, end: bar.update(max(0, round(now) - bar.pos)),
        )
    value = {
        **to_json(result.played, file.read_bytes(), Cost.so_far()),
        # Nothing of a real run comes again, so it has no trace to be compared by.
        "trace_hash": None,
        "real": True,
        "not_applied": result.not_applied,
    }
    if report_file is not None:
        from bnw.sim.report import report_page

        text = report_page(_on_paper(result), {**value, "trace_hash": "none: a real run never comes again"})
        write_file(report_file, text.encode(), force=True)
    desk.session.show(value, lambda: _lines(result))
    if not result.played.passed:
        sys.exit(int(ExitStatus.REFUSED))


def _on_paper(result: PlayedForReal) -> Played:
    """For a page that was made for simulations: says first that this was none, and judges only what can be judged."""
    from bnw.sim.metrics import METRICS

    played = result.played
    said = [
        played.scenario.about.strip(),
        "This was no simulation: real nodes ran as processes, over libp2p on loopback, in real time.",
        *(f"Not as in the file: {text}." for text in result.not_applied),
    ]
    return replace(
        played,
        scenario=replace(played.scenario, about="\n".join(said)),
        metrics={name: played.metrics.get(name, math.nan) for name in METRICS},
        checked=[item for item in played.checked if item.met is not None],
    )


def _is_watched(desk: Desk) -> bool:
    return sys.stderr.isatty() and not desk.session.as_json


def _lines(result: PlayedForReal) -> list[str]:
    from bnw.cli.tables import table

    played = result.played
    lines = [played.scenario.title, ""]
    if played.checked:
        rows = [(_verdict(item), item.expect.metric, _value(item.value), _bounds(item)) for item in played.checked]
        lines += [*table(["", "EXPECTED", "VALUE", "BOUNDS"], rows), ""]
    if result.not_applied:
        lines += ["not as in the file:", *(f"  {text}" for text in result.not_applied), ""]
    lines += table(["METRIC", "VALUE"], [(name, _value(value)) for name, value in played.metrics.items()])
    return [*lines, "", "all that could be judged holds" if played.passed else "FAILED"]


def _verdict(item: Checked) -> str:
    return {None: "not judged", True: "ok", False: "FAILED"}[item.met]


def _bounds(item: Checked) -> str:
    low, high = item.expect.at_least, item.expect.at_most
    parts = [f"at least {low:g}" if low is not None else "", f"at most {high:g}" if high is not None else ""]
    when = f"at {item.at:g} s" if item.expect.at is not None else ""
    return ", ".join(part for part in (*parts, when) if part)


def _value(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value == int(value) else f"{value:,.3f}"
