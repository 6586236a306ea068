"""What a scenario did to its nodes, and when: the bars above every picture that has time in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from bnw.sim.report.words import share
from bnw.sim.scenario.schema import Scenario

MAX_SHOWN: Final = 8


@dataclass(frozen=True, slots=True, order=True)
class Happening:
    """From `start` to `end`, in seconds; a moment if both are the same."""

    start: float
    end: float
    words: str
    divides: bool = False
    """Whether the network is in two meanwhile."""


def happenings(scenario: Scenario, until: float) -> tuple[list[Happening], int]:
    """In the order of their beginnings, up to `until`; and how many more there are than can be shown."""
    found: list[Happening] = []
    for cut in scenario.partition:
        found.append(Happening(cut.at, min(cut.heal, until), "partition", divides=True))
    for churn in scenario.churn:
        stop = until if churn.stop is None else min(churn.stop, until)
        who = "all" if churn.share == 1 else f"{share(churn.share)} of"
        found.append(Happening(churn.start, stop, f"{who} {churn.role} come and go"))
    for crash in scenario.crash:
        end = crash.at if crash.back_after is None else min(crash.at + crash.back_after, until)
        found.append(
            Happening(crash.at, end, f"{crash.count} {crash.role} {'crashes' if crash.count == 1 else 'crash'}")
        )
    for leave in scenario.leave:
        found.append(Happening(leave.at, leave.at, f"{leave.count or 'all'} {leave.role} leave"))
    for clock in scenario.clock:
        found.append(Happening(clock.at, clock.at, f"clocks of {clock.role} jump by {clock.by:g} s"))
    for group in scenario.nodes:
        if group.start or group.spread:
            found.append(
                Happening(
                    group.start,
                    min(group.start + group.spread, until),
                    f"{group.count} {group.role} {'joins' if group.count == 1 else 'join'}",
                )
            )
    for adversary in scenario.adversary:
        stop = until if adversary.stop is None else min(adversary.stop, until)
        found.append(Happening(adversary.start, stop, f"attack: {adversary.count} {adversary.kind}"))
    found = sorted(happening for happening in found if happening.start <= until)
    return found[:MAX_SHOWN], max(0, len(found) - MAX_SHOWN)
