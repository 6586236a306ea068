"""Many runs of one scenario: each value of a key with each seed, over processes on this machine."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from bnw.sim.measure import percentile
from bnw.sim.quiet import no_logging
from bnw.sim.result import rounded
from bnw.sim.scenario.checking import estimated_memory, read_scenario, usable_memory
from bnw.sim.scenario.reading import MAX_FILE, fault
from bnw.wire.errors import ExitStatus, LocalError

MAX_RUNS: Final = 2000
SHOWN: Final = (
    "delivery.coverage",
    "delivery.p50",
    "delivery.p99",
    "repair.max",
    "traffic.redundancy",
    "traffic.bytes_per_node",
    "calls.completed_share",
)
"""Metrics of table and picture; the JSON has all."""

HELD: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Note = Callable[[str], None]


def run_sweep(file: Path, sweep: str | None, seeds: Sequence[int], *, note: Note) -> dict[str, Any]:
    """Play `file` for each value and seed. Nothing of it goes on after an exception.

    Raises `LocalError`: `scenario` and `unreadable` before anything runs, `worker-ended` if the system ends a process.
    """
    key, values = _parse(sweep)
    try:
        with file.open("rb") as opened:
            data = opened.read(MAX_FILE + 1)
    except OSError as error:
        cause = error.strerror or str(error)
        raise LocalError("unreadable", cause, place=str(file), exit_status=ExitStatus.USAGE) from None
    scenarios = [read_scenario(data, str(file), {} if key is None else {key: value}) for value in values]
    if len(values) * len(seeds) > MAX_RUNS:
        raise fault(
            "--sweep",
            f"{len(values)} values with {len(seeds)} seeds are {len(values) * len(seeds):,} runs",
            f"at most {MAX_RUNS:,} are possible at once: fewer values or seeds",
        )
    jobs = [(value, seed) for value in values for seed in seeds]
    fit = usable_memory() // max(1, *map(estimated_memory, scenarios))
    found = _play_all(data, str(file), key, jobs, max(1, min(len(jobs), os.cpu_count() or 1, fit)), note)
    rows = [_row(key, value, [found[value, seed] for seed in seeds], seeds) for value in values]
    return {
        "title": scenarios[0].title,
        "key": key,
        "seeds": list(seeds),
        "passed": all(not row["failed_seeds"] for row in rows),
        "rows": rows,
    }


def _play_all(
    data: bytes, place: str, key: str | None, jobs: Sequence[tuple[object, int]], workers: int, note: Note
) -> dict[tuple[object, int], dict[str, Any]]:
    found: dict[tuple[object, int], dict[str, Any]] = {}
    # A fresh interpreter for each worker: a forked one would share this one's open files and signal handlers.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_leave_signals_to_parent) as pool:
        try:
            with _signals_held():
                waiting = {pool.submit(_run, data, place, key, value, seed): (value, seed) for value, seed in jobs}
            for done in as_completed(waiting):
                value, seed = waiting[done]
                found[value, seed] = done.result()
                verdict = "ok" if found[value, seed]["passed"] else "FAILED"
                named = "" if key is None else f"{key} = {value}, "
                note(f"{len(found)} of {len(jobs)}: {named}seed {seed}: {verdict}")
        except BrokenProcessPool:
            raise LocalError(
                "worker-ended",
                "the system ended a process that played, perhaps for want of memory",
                place=place,
                cure="fewer nodes, or nothing else at the same time",
            ) from None
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for worker in multiprocessing.active_children():
                worker.kill()
            raise
    return found


@contextmanager
def _signals_held() -> Iterator[None]:
    """Let signals wait while the workers are started. One that is half started would complain of it at length."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, HELD)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _leave_signals_to_parent() -> None:
    """Ctrl-C reaches all processes of a terminal. The parent says so once, and ends the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Held by whoever started this process; a mask is inherited.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, HELD)


def _row(key: str | None, value: object, runs: Sequence[dict[str, Any]], seeds: Iterable[int]) -> dict[str, Any]:
    metrics = {}
    for name in runs[0]["metrics"]:
        figures = sorted(run["metrics"][name] for run in runs)
        metrics[name] = {"least": figures[0], "median": rounded(percentile(figures, 0.5)), "most": figures[-1]}
    return {
        "value": value,
        "failed_seeds": [seed for seed, run in zip(seeds, runs, strict=True) if not run["passed"]],
        "failed": sorted({name for run in runs for name in run["failed"]}),
        "metrics": metrics,
        "trace_hashes": [run["trace_hash"] for run in runs],
    }


def _run(data: bytes, place: str, key: str | None, value: object, seed: int) -> dict[str, Any]:
    from bnw.sim.play import play

    with no_logging():
        played = play(read_scenario(data, place, {} if key is None else {key: value}), seed)
    return {
        "passed": played.passed,
        "failed": [item.expect.metric for item in played.checked if item.met is False],
        "metrics": {name: rounded(number) for name, number in played.metrics.items()},
        "trace_hash": played.trace.digest.hex(),
    }


def _parse(sweep: str | None) -> tuple[str | None, list[object]]:
    """`key=a,b,c`: the key, and each value as TOML would have it, or else as text."""
    if sweep is None:
        return None, [None]
    key, equals, text = sweep.partition("=")
    values = [part.strip() for part in text.split(",") if part.strip()]
    if not equals or not key or not values:
        raise fault("--sweep", f"{sweep!r} is not key=a,b,c", "write for example network.gossip_loss=0,0.1,0.2")
    return key.strip(), [_value(part) for part in values]


def _value(text: str) -> object:
    if text in ("true", "false"):
        return text == "true"
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text
