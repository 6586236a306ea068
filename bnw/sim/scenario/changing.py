"""Changing one value of a scenario document by its name: what a sweep varies and `--shrink` makes smaller.

A name is a path such as `network.gossip_loss`, `duration`, `nodes.carrier.count` (the table whose role, `by`, `kind` or
`metric` is that word) or `churn.1.share` (the first table of that kind).
"""

from __future__ import annotations

from typing import Any

from bnw.sim.scenario.reading import fault

_NAMED_BY = ("role", "by", "kind", "metric")


def change(document: dict[str, Any], name: str, value: Any, place: str) -> None:
    """Set the value named `name`. Raises `LocalError` (`scenario`) for a path that leads nowhere."""
    table, key = _find(document, name, place)
    table[key] = value


def _find(document: dict[str, Any], name: str, place: str) -> tuple[dict[str, Any], str]:
    parts = name.split(".")
    where = f"{place}: {name}"
    if len(parts) == 1:
        return document, parts[0]
    if len(parts) == 2:
        table = document.setdefault(parts[0], {})
        if isinstance(table, list) and len(table) == 1:
            table = table[0]
        if not isinstance(table, dict):
            raise fault(where, f"there are several tables [[{parts[0]}]]", f"write {parts[0]}.1.{parts[1]} or name one")
        return table, parts[1]
    tables = document.get(parts[0])
    if len(parts) != 3 or not isinstance(tables, list):
        raise fault(where, "no such value", "write table.key, table.number.key or table.role.key")
    if parts[1].isdigit():
        if not 1 <= int(parts[1]) <= len(tables):
            raise fault(where, f"there are {len(tables)} tables [[{parts[0]}]]")
        return tables[int(parts[1]) - 1], parts[2]
    found = [table for table in tables if any(table.get(key) == parts[1] for key in _NAMED_BY)]
    if len(found) != 1:
        raise fault(where, f"{len(found)} tables [[{parts[0]}]] are called {parts[1]!r}")
    return found[0], parts[2]
