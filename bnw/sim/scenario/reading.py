"""From TOML to the schema, strictly: one clear error for the first thing that is wrong."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import MISSING, fields
from typing import Any, Final

from bnw.sim.scenario.keys import READ
from bnw.sim.scenario.schema import TABLES, Scenario
from bnw.wire.errors import ExitStatus, LocalError
from bnw.wire.limits import KIB

MAX_FILE: Final = 256 * KIB
MAX_TABLES: Final = 1000
"""Tables of one name in one file."""


def parse(data: bytes, place: str) -> dict[str, Any]:
    """The TOML document. Raises `LocalError` (`scenario`)."""
    if len(data) > MAX_FILE:
        raise fault(place, f"more than {MAX_FILE:,} bytes")
    try:
        return tomllib.loads(data.decode())
    except UnicodeDecodeError:
        raise fault(place, "not UTF-8 text") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise fault(place, f"not readable as TOML: {error}") from None


def build(document: Mapping[str, Any], place: str) -> Scenario:
    """A scenario of a document. Raises `LocalError` (`scenario`)."""
    values: dict[str, Any] = {}
    known = [spec.name for spec in fields(Scenario)]
    for name, value in document.items():
        if name not in known:
            raise fault(place, f"unknown table or key {name!r}", suggestion(name, known))
        if name in TABLES:
            values[name] = _tables(name, value, place)
    plain = {name: value for name, value in document.items() if name not in TABLES}
    scenario: Scenario = _record(Scenario, plain, f"{place}: at the top", values)
    return scenario


def _tables(name: str, value: Any, place: str) -> Any:
    cls, many = TABLES[name]
    shown = f"[[{name}]]" if many else f"[{name}]"
    if not many:
        if not isinstance(value, dict):
            raise fault(place, f"{name} must be a table", f"write {shown}")
        return _record(cls, value, f"{place}: {shown}")
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise fault(place, f"{name} must be a list of tables", f"write {shown} with double brackets")
    if len(value) > MAX_TABLES:
        raise fault(place, f"{len(value):,} tables {shown}; at most {MAX_TABLES:,} are possible")
    return tuple(_record(cls, item, f"{place}: {shown} number {at}") for at, item in enumerate(value, 1))


def _record(cls: type[Any], table: Mapping[str, Any], place: str, ready: Mapping[str, Any] | None = None) -> Any:
    values = dict(ready or {})
    specs = {spec.name: spec for spec in fields(cls) if READ in spec.metadata}
    for name, value in table.items():
        if name not in specs:
            raise fault(place, f"unknown key {name!r}", suggestion(name, specs))
        try:
            values[name] = specs[name].metadata[READ](value)
        except ValueError as error:
            raise fault(place, f"{name}: {error}") from None
    for name, spec in specs.items():
        if name not in values and spec.default is MISSING:
            raise fault(place, f"the key {name!r} is missing")
    return cls(**values)


def suggestion(word: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(word, known, n=1)
    return f"did you mean {near[0]!r}?" if near else f"known are {', '.join(sorted(known))}"


def fault(place: str, cause: str, cure: str = "mend the file; docs/simulation.md describes it") -> LocalError:
    return LocalError("scenario", cause, place=place, cure=cure, exit_status=ExitStatus.USAGE)
