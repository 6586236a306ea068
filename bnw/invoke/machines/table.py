"""Machines as tables: rows of source phases, event, condition, target phase and what is to be done.

The first row that fits decides. An event that fits no row changes nothing and asks for nothing: that is how events that
come late, twice or in the wrong order are harmless.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar


class Effect:
    """Base of what a machine asks the world to do."""


class Event:
    """Base of what the world tells a machine."""


class State(Protocol):
    """A frozen dataclass; `phase` is where in the diagram the call is."""

    @property
    def phase(self) -> str: ...


S = TypeVar("S", bound=State)


@dataclass(frozen=True, slots=True)
class Row(Generic[S]):
    """One arrow, or several that differ in their source only. `to` None means that the phase stays.

    `when` is the condition in words, for the diagram; `holds` decides it. `do` gives the rest of the new state and the
    effects; it must not touch the phase.
    """

    sources: tuple[str, ...]
    event: type[Event]
    to: str | None
    do: Callable[[S, Any], tuple[S, Sequence[Effect]]]
    when: str = ""
    holds: Callable[[S, Any], bool] = lambda state, event: True


def step(rows: Iterable[Row[S]], state: S, event: Event) -> tuple[S, tuple[Effect, ...]]:
    """The state after `event`, and what is to be done, in order."""
    for row in rows:
        if state.phase in row.sources and type(event) is row.event and row.holds(state, event):
            changed, effects = row.do(state, event)
            moved: S = changed if row.to is None else replace(changed, phase=row.to)  # type: ignore[type-var]  # a dataclass
            return moved, tuple(effects)
    return state, ()


def diagram(rows: Sequence[Row[S]], *, start: str, final: Sequence[str]) -> str:
    """The machine as a Mermaid state diagram. Rows that stay in their phase without a condition are left out."""
    lines = ["stateDiagram-v2", f"    [*] --> {_node(start)}"]
    arrows: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        for source in row.sources:
            if row.to is not None and row.to != source:
                label = row.event.__name__ + (f" [{row.when}]" if row.when else "")
                arrows.setdefault((source, row.to), []).append(label)
    lines += [f"    {_node(source)} --> {_node(to)}: {'<br/>'.join(labels)}" for (source, to), labels in arrows.items()]
    return "\n".join([*lines, *(f"    {_node(phase)} --> [*]" for phase in final)])


def _node(phase: str) -> str:
    return phase.replace("-", "_")
