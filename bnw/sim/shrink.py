"""Makes a failing scenario smaller as long as it fails in the same way: fewer tables, fewer nodes, calmer links.

Greedy, and done when nothing more can be left out: what remains is rarely the smallest, but each part of it matters. A
run that ends with an exception, which is a fault of BNW's own, is a failure as well, named by the exception's type. The
time is left as it is: a shorter run may fail for want of time, which says nothing.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from bnw.sim.play import play
from bnw.sim.scenario.checking import check
from bnw.sim.scenario.reading import MAX_FILE, build, parse
from bnw.wire.errors import BnwError, ExitStatus, LocalError

MAX_TRIES: Final = 200
DROPPABLE: Final = (
    "publish",
    "provide",
    "invoke",
    "fetch",
    "follow",
    "churn",
    "crash",
    "leave",
    "partition",
    "clock",
    "adversary",
    "nodes",
)
NUMBERS: Final = ("count", "versions", "capabilities")
CALM: Final = ("loss", "gossip_loss", "jitter", "bandwidth", "message_cost", "regions")

Note = Callable[[str], None]


@dataclass(slots=True)
class Shrunk:
    """`toml` is the smaller scenario; `failed` are the metrics whose expectations fail in it, or what it raises."""

    toml: str
    failed: list[str]
    tries: int
    changes: list[str] = field(default_factory=list)


def shrink_scenario(file: Path, seed: int, *, note: Note) -> Shrunk:
    """Raises `LocalError`: `scenario`, `unreadable`, or `nothing-fails` if the scenario passes with this seed."""
    try:
        with file.open("rb") as opened:
            document = parse(opened.read(MAX_FILE + 1), str(file))
    except OSError as error:
        cause = error.strerror or str(error)
        raise LocalError("unreadable", cause, place=str(file), exit_status=ExitStatus.USAGE) from None
    build_checked(document, str(file))
    wanted = _failures(document, seed)
    if not wanted:
        raise LocalError(
            "nothing-fails", f"the scenario passes with seed {seed}", place=str(file), cure="try other seeds"
        )
    note(f"fails: {', '.join(sorted(wanted))}")
    # Only what fails is to be kept failing; other expectations might begin to fail and mean nothing.
    document["expect"] = [item for item in document["expect"] if item["metric"] in wanted]
    shrunk = Shrunk("", sorted(wanted), 0)
    is_smaller = True
    while is_smaller and shrunk.tries < MAX_TRIES:
        is_smaller = False
        for what, smaller in _smaller(document):
            if shrunk.tries >= MAX_TRIES:
                break
            shrunk.tries += 1
            if _failures(smaller, seed) & wanted:
                document, is_smaller = smaller, True
                shrunk.changes.append(what)
                note(f"try {shrunk.tries}: {what}: fails still")
                break
    shrunk.toml = to_toml(document)
    return shrunk


def build_checked(document: dict[str, Any], place: str) -> Any:
    scenario = build(document, place)
    check(scenario, place)
    return scenario


def _failures(document: dict[str, Any], seed: int) -> set[str]:
    """The metrics that fail, or the exception that ends the run; nothing for a scenario that cannot be."""
    try:
        scenario = build_checked(document, "smaller scenario")
    except BnwError:
        return set()
    try:
        checked = play(scenario, seed).checked
    except Exception as error:  # noqa: BLE001 - whatever ends a run is what somebody wants to see in a smaller one
        return {type(error).__name__}
    return {item.expect.metric for item in checked if item.met is False}


def _smaller(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each way to make a document smaller by one step, the boldest first."""
    for name in DROPPABLE:
        for at in range(len(document.get(name, []))):
            changed = copy.deepcopy(document)
            del changed[name][at]
            if not changed[name]:
                del changed[name]
            yield f"without [[{name}]] {at + 1}", changed
    for name in DROPPABLE:
        for at, table in enumerate(document.get(name, [])):
            for key in NUMBERS:
                if isinstance(table.get(key), int) and table[key] > 1:
                    changed = copy.deepcopy(document)
                    changed[name][at][key] = table[key] // 2
                    yield f"[[{name}]] {at + 1}: {key} = {table[key] // 2}", changed
    for key in CALM:
        if key in document.get("network", {}):
            changed = copy.deepcopy(document)
            del changed["network"][key]
            yield f"[network] without {key}", changed


def to_toml(document: dict[str, Any]) -> str:
    """A scenario document as TOML: plain keys first, then the tables."""
    lines = [f"{key} = {_value(value)}" for key, value in document.items() if not isinstance(value, dict | list)]
    for key, value in document.items():
        if isinstance(value, dict):
            lines += ["", f"[{key}]", *(f"{name} = {_value(item)}" for name, item in value.items())]
        elif isinstance(value, list):
            for table in value:
                lines += ["", f"[[{key}]]", *(f"{name} = {_value(item)}" for name, item in table.items())]
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    # Text, numbers, booleans and lists of text are written alike in JSON and TOML.
    return json.dumps(value, ensure_ascii=True)
