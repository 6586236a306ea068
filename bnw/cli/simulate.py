"""`bnw simulate`: play a scenario in virtual time and say whether what it expects held."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click
from click.core import ParameterSource

from bnw.cli.files import check_place, unreadable
from bnw.cli.reporting import reporting
from bnw.wire.errors import ExitStatus, LocalError
from bnw.wire.printable import printable

if TYPE_CHECKING:
    from bnw.sim.play import Played
    from bnw.sim.replay import Replay

MAX_SEED = 2**53 - 1


@click.command(short_help="Play a scenario in virtual time.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--seed", type=click.IntRange(-MAX_SEED, MAX_SEED), default=1, show_default=True, help="Decides it all.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("--trace", "trace_file", type=click.Path(path_type=Path), help="Write every event to this file.")
@click.option("--replay", type=click.Path(path_type=Path), help="Compare every event with this trace of another run.")
@click.option("--until", metavar="T", help="Stop at this virtual time, such as 30s, and look.")
@click.option("--report", "report_file", type=click.Path(path_type=Path), help="Write an HTML page to this file.")
@click.option("--sweep", metavar="KEY=A,B,…", help="Play once for each value, such as network.gossip_loss=0,0.1,0.2.")
@click.option("--seeds", type=click.IntRange(1, 1000), help="Play with the seeds 1 to N, in several processes.")
@click.option("--shrink", is_flag=True, help="Look for a smaller scenario that fails as well, and print it.")
@click.option(
    "--compare",
    "compare_with",
    metavar="BEFORE",
    type=click.Path(path_type=Path),
    help="Show what changed from this result (of --json) to FILE, another.",
)
def simulate(
    file: Path,
    seed: int,
    as_json: bool,
    trace_file: Path | None,
    replay: Path | None,
    until: str | None,
    report_file: Path | None,
    sweep: str | None,
    seeds: int | None,
    shrink: bool,
    compare_with: Path | None,
) -> None:
    """Play the scenario FILE with the nodes that ship, on a simulated network, in virtual time.

    The same file, seed and versions give the same trace. docs/simulation.md describes scenario files; simulations/ has
    many. Exit status: 0 if all expectations held, 1 if one did not, 2 for a file that cannot be used.

    \b
    Examples:
      bnw simulate simulations/smoke.toml --seed 7 --report smoke.html
      bnw simulate simulations/spam.toml --sweep adversary.spam.rate=1,10,100 --seeds 5
      bnw simulate --compare before.json after.json
    """
    from bnw.sim.quiet import no_logging

    with reporting(as_json), no_logging():
        _refuse_together(click.get_current_context())
        if report_file is not None:
            check_place(report_file)
        if compare_with is not None:
            _compare(compare_with, file, as_json)
        elif sweep is not None or seeds is not None:
            _sweep(file, sweep, seeds or 1, as_json, report_file)
        elif shrink:
            _shrink(file, seed, as_json)
        else:
            _play(file, seed, as_json, trace_file, replay, until, report_file)


def _play(
    file: Path,
    seed: int,
    as_json: bool,
    trace_file: Path | None,
    replay_file: Path | None,
    until: str | None,
    report_file: Path | None,
) -> None:
    from bnw.sim.play import play
    from bnw.sim.replay import Replay
    from bnw.sim.result import Cost, to_json
    from bnw.sim.scenario import load_scenario
    from bnw.sim.scenario.keys import READ, duration
    from bnw.sim.trace import EventTrace

    scenario = load_scenario(file)
    stop: float | None = None
    if until is not None:
        try:
            stop = duration("").metadata[READ](until)
        except ValueError as error:
            raise LocalError("usage", str(error), place="--until", exit_status=ExitStatus.USAGE) from None
    with ExitStack() as stack:
        if replay_file is not None and trace_file is not None:
            raise LocalError(
                "usage",
                "--replay compares the trace and does not write it",
                place="--trace",
                cure="leave one of them out",
                exit_status=ExitStatus.USAGE,
            )
        sink: BinaryIO | Replay | None = None
        if replay_file is not None:
            sink = Replay(stack.enter_context(_opened_to_read(replay_file)))
        elif trace_file is not None:
            sink = stack.enter_context(_opened(trace_file))
        progress = stack.enter_context(_progress(scenario.title)) if sys.stderr.isatty() else _no_progress
        trace = EventTrace(None if sink is None else sink.write)
        played = play(scenario, seed, trace=trace, until=stop, progress=progress)
        if isinstance(sink, Replay):
            sink.finish(is_whole=stop is None)
    result = to_json(played, file.read_bytes(), Cost.so_far())
    if isinstance(sink, Replay):
        result["replay"] = None if sink.difference is None else asdict(sink.difference)
    if report_file is not None:
        from bnw.sim.report import report_page

        _write(report_file, report_page(played, result))
    if as_json:
        click.echo(json.dumps(result, indent=2))
    else:
        for line in (*_lines(played, result), *(_replay_lines(sink) if isinstance(sink, Replay) else ())):
            click.echo(line)
    if not played.passed or (isinstance(sink, Replay) and sink.difference is not None):
        sys.exit(int(ExitStatus.REFUSED))


def _replay_lines(replay: Replay) -> list[str]:
    difference = replay.difference
    if difference is None:
        return ["", f"the same as the trace in all {replay.lines:,} lines"]
    lines = ["", f"the first difference from the trace is in line {difference.line:,}:"]
    lines += [f"    {printable(line)}" for line in difference.before]
    for mark, line in (("-", difference.expected), ("+", difference.found)):
        lines.append(f"  {mark} {'(the trace ends here)' if line is None else printable(line)}")
    return lines


def _lines(played: Played, result: dict[str, Any]) -> list[str]:
    from bnw.cli.tables import facts, table
    from bnw.sim.report.words import bounds_text, metric_text, seconds

    shown = ("delivery.coverage", "delivery.p50", "delivery.p99", "traffic.redundancy", "traffic.bytes_per_node")
    pairs = [
        ("scenario", played.scenario.title),
        ("seed", str(played.seed)),
        ("virtual time", f"{result['virtual_seconds']:g} s"),
        ("nodes", f"{played.scenario.honest:,} honest, {played.scenario.adversaries:,} adversaries"),
        ("trace hash", result["trace_hash"]),
        *((name, metric_text(name, played.metrics[name])) for name in shown),
    ]
    lines = [*facts(pairs), ""]
    rows = [
        [
            _MARKS[item.met],
            item.expect.metric,
            f"{', '.join(bounds_text(item.expect))} at {seconds(item.at)}",
            metric_text(item.expect.metric, item.value),
        ]
        for item in played.checked
    ]
    if rows:
        lines += table(["", "expectation", "bound", "value"], rows)
    return lines


_MARKS = {True: "ok", False: "FAILED", None: "not reached"}


def _bound(item: dict[str, Any]) -> str:
    words = [f"at least {item['at_least']:g}"] if item["at_least"] is not None else []
    words += [f"at most {item['at_most']:g}"] if item["at_most"] is not None else []
    return f"{', '.join(words)} at {item['at']:g} s"


def _compare(before: Path, after: Path, as_json: bool) -> None:
    from bnw.sim.compare import compare_results, read_result

    changes = compare_results(read_result(before), read_result(after))
    if as_json:
        click.echo(json.dumps(changes, indent=2))
    else:
        for line in comparison_lines(changes):
            click.echo(line)
    if changes["newly_failed"]:
        sys.exit(int(ExitStatus.REFUSED))


def comparison_lines(changes: dict[str, Any]) -> list[str]:
    from bnw.cli.tables import table

    lines = [f"note: {printable(note)}" for note in changes["notes"]]
    if changes["same_trace"]:
        return [*lines, "the traces are the same"]
    if not changes["changed"]:
        lines.append("no metric has changed")
    rows = [
        [
            item["metric"],
            *("-" if item[side] is None else f"{item[side]:,g}" for side in ("before", "after")),
            "-" if item["ratio"] is None else f"{item['ratio']:.3f}",
        ]
        for item in changes["changed"]
    ]
    if rows:
        lines += table(["metric", "before", "after", "ratio"], rows)
    for item in changes["newly_failed"]:
        lines.append(f"FAILED now, not before: {printable(str(item['metric']))}, {_bound(item)}")
    return lines


TOGETHER = {
    "--compare": {"--compare"},
    "--sweep": {"--sweep", "--seeds", "--report"},
    "--seeds": {"--sweep", "--seeds", "--report"},
    "--shrink": {"--shrink", "--seed"},
}
"""What each of these options can stand with, besides --json."""


def _refuse_together(context: click.Context) -> None:
    """An option that would go unheeded is said, not passed over."""
    given = [
        option.opts[0]
        for option in context.command.params
        if isinstance(option, click.Option)
        and context.get_parameter_source(str(option.name)) is ParameterSource.COMMANDLINE
        and option.name != "as_json"
    ]
    chosen = next((name for name in TOGETHER if name in given), None)
    lost = [] if chosen is None else [name for name in given if name not in TOGETHER[chosen]]
    if lost:
        raise LocalError(
            "usage",
            f"{chosen} does nothing with {' and '.join(lost)}",
            place="simulate",
            cure="leave one of them out",
            exit_status=ExitStatus.USAGE,
        )


def _sweep(file: Path, sweep: str | None, seeds: int, as_json: bool, report_file: Path | None) -> None:
    from bnw.sim.sweep import SHOWN, run_sweep

    outcome = run_sweep(file, sweep, range(1, seeds + 1), note=lambda text: click.echo(printable(text), err=True))
    if report_file is not None:
        from bnw.sim.report import sweep_page

        _write(report_file, sweep_page(outcome["title"], outcome, SHOWN))
    if as_json:
        click.echo(json.dumps(outcome, indent=2))
    else:
        for line in _sweep_lines(outcome):
            click.echo(line)
    if not outcome["passed"]:
        sys.exit(int(ExitStatus.REFUSED))


def _sweep_lines(outcome: dict[str, Any]) -> list[str]:
    from bnw.cli.tables import table
    from bnw.sim.report.words import metric_text
    from bnw.sim.sweep import SHOWN

    rows = outcome["rows"]
    heads = ["all seeds" if outcome["key"] is None else str(row["value"]) for row in rows]
    lines = [[name, *(metric_text(name, row["metrics"][name]["median"]) for row in rows)] for name in SHOWN]
    lines.append(["failed seeds", *(", ".join(map(str, row["failed_seeds"])) or "none" for row in rows)])
    seeds = f"{len(outcome['seeds'])} {'seed' if len(outcome['seeds']) == 1 else 'seeds'}"
    note = f"medians of {seeds}; --json has all metrics with least and most, --report draws them"
    return [*table([outcome["key"] or "", *heads], lines), "", note]


def _shrink(file: Path, seed: int, as_json: bool) -> None:
    from bnw.sim.shrink import shrink_scenario

    small = shrink_scenario(file, seed, note=lambda text: click.echo(printable(text), err=True))
    if as_json:
        click.echo(
            json.dumps(
                {"changes": small.changes, "failed": small.failed, "tries": small.tries, "toml": small.toml}, indent=2
            )
        )
    else:
        click.echo(small.toml)


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    try:
        file = path.open("wb")
    except OSError as error:
        raise LocalError(
            "write-failed", error.strerror or str(error), place=str(path), exit_status=ExitStatus.USAGE
        ) from None
    with file:
        yield file


@contextmanager
def _opened_to_read(path: Path) -> Iterator[BinaryIO]:
    try:
        file = path.open("rb")
    except OSError as error:
        raise unreadable(str(path), error.strerror or str(error)) from None
    with file:
        yield file


def _write(path: Path, text: str) -> None:
    with _opened(path) as file:
        file.write(text.encode())


def _no_progress(now: float, end: float) -> None:
    return None


@contextmanager
def _progress(title: str) -> Iterator[Callable[[float, float], None]]:
    """A bar on standard error: virtual time, real time, and how long it may still take."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:.0f} of {task.total:.0f} s virtual"),
        TimeElapsedColumn(),
        TextColumn("real, left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False) as bar:
        task = bar.add_task(printable(title), total=1)

        def show(now: float, end: float) -> None:
            bar.update(task, completed=now, total=end, refresh=True)

        yield show
