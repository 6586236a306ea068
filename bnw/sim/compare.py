"""What has changed between two results of `bnw simulate --json`: for CI, against the figures of the last release."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from bnw.sim.result import FORMAT
from bnw.wire.errors import ExitStatus, LocalError
from bnw.wire.limits import MIB

MAX_RESULT: Final = 16 * MIB


def read_result(path: Path) -> dict[str, Any]:
    """A result from a file. Raises `LocalError` (`unreadable`, `result`)."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_RESULT + 1)
        value = json.loads(data) if len(data) <= MAX_RESULT else None
    except OSError as error:
        cause = error.strerror or str(error)
        raise LocalError("unreadable", cause, place=str(path), exit_status=ExitStatus.USAGE) from None
    except (ValueError, RecursionError):
        value = None
    if (
        not isinstance(value, dict)
        or value.get("format") != FORMAT
        or not isinstance(value.get("metrics"), dict)
        or not isinstance(value.get("expectations"), list)
    ):
        raise LocalError(
            "result",
            f"this is no result in the format {FORMAT}",
            place=str(path),
            cure="make one with `bnw simulate FILE --json`",
            exit_status=ExitStatus.USAGE,
        )
    return value


def compare_results(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Every metric that differs, expectations that fail now and did not, and what makes the two hard to compare."""
    notes = [
        f"{what}: {before.get(what)} before, {after.get(what)} after"
        for what in ("scenario", "scenario_hash", "seed", "virtual_seconds")
        if before.get(what) != after.get(what)
    ]
    if bool(before.get("real")) != bool(after.get("real")):
        notes.insert(0, "one was simulated, the other played by real nodes (`bnw testnet FILE`)")
    notes += _versions(before.get("versions"), after.get("versions"))
    old, new = before["metrics"], after["metrics"]
    changed = [
        {"metric": name, "before": old.get(name), "after": new.get(name), "ratio": _ratio(old.get(name), new.get(name))}
        for name in sorted({*old, *new})
        if old.get(name) != new.get(name)
    ]
    failed_before = {_key(item) for item in before["expectations"] if item.get("met") is False}
    failing = [item for item in after["expectations"] if item.get("met") is False]
    return {
        "notes": notes,
        "same_trace": before.get("trace_hash") is not None and before.get("trace_hash") == after.get("trace_hash"),
        "versions": [before.get("versions"), after.get("versions")],
        "changed": changed,
        "newly_failed": [item for item in failing if _key(item) not in failed_before],
    }


def _versions(before: object, after: object) -> list[str]:
    if not isinstance(before, dict) or not isinstance(after, dict):
        return []
    return [
        f"{name}: {before.get(name, 'none')} before, {after.get(name, 'none')} after"
        for name in sorted({*before, *after}, key=str)
        if before.get(name) != after.get(name)
    ]


def _key(item: dict[str, Any]) -> tuple[object, ...]:
    return tuple(item.get(key) for key in ("metric", "at", "at_least", "at_most"))


def _ratio(before: object, after: object) -> float | None:
    if isinstance(before, int | float) and isinstance(after, int | float) and before:
        return round(after / before, 4)
    return None
