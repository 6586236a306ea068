"""The worst node's story: what happened to the node that lacked most or waited longest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from bnw.sim.evaluate import worst_nodes
from bnw.sim.measure import HEAL, START, Published, Recorder, Repair
from bnw.sim.plan import Place
from bnw.sim.play import Played
from bnw.sim.report.words import amount, seconds, size

MAX_LISTED: Final = 12
_CAUSES: Final = {HEAL: "a partition healed", START: "it came later than the others"}


def worst_name(played: Played) -> str:
    """Empty if there are no nodes."""
    order = worst_nodes(played.recorder)
    return played.recorder.nodes[order[0]].name if order else ""


def worst_story(played: Played, *, is_real: bool = False) -> list[str]:
    """Sentences: who it is, what happened to it in the order of events, and how it ended."""
    recorder = played.recorder
    order = worst_nodes(recorder)
    if not order:
        return ["There are no nodes."]
    number = order[0]
    node, place = recorder.nodes[number], played.plan.places[recorder.nodes[number].name]
    told = [*_who(played, place)]
    if node.starts > 1 or node.crashes:
        told.append(f"It was started {_times(node.starts)} and vanished without a word {_times(node.crashes)}.")
    told += _repairs(recorder, node.name, number)
    if node.slowest_object >= 0:
        slow = recorder.objects[node.slowest_object]
        told.append(
            f"It waited longest for {_named(slow)}, which {recorder.nodes[slow.publisher].name} published at "
            f"{slow.at:.1f} s: {seconds(node.slowest)}" + (" after it was started." if node.since > slow.at else ".")
        )
    received, sent = played.node_traffic.get(node.name, (0, 0))
    # Relays of a testnet count both ways of the connections that others made to the node.
    traffic = (
        f"{size(received)} passed on connections to it"
        if is_real
        else f"{size(received)} came in, {size(sent)} went out"
    )
    told.append(f"{amount(node.first)} objects reached it for the first time; {traffic}.")
    told.append(_end(recorder, number))
    return told


def _who(played: Played, place: Place) -> Iterator[str]:
    where = f" in {place.region}" if place.region else ""
    kinds = [played.plan.places[name] for name in place.neighbours]
    evil = sum(not other.is_honest for other in kinds)
    others = f", {evil} of them adversaries" if evil else ""
    joined = f", and joined at {seconds(place.start)}" if place.start else ""
    yield f"{place.name} is a {place.role}{where} with {len(kinds)} neighbours{others}{joined}."
    if place.clock_offset_ms or place.clock_drift:
        drift = f" and runs wrong by {place.clock_drift:.0f} parts per million" if place.clock_drift else ""
        yield f"Its clock is wrong by {place.clock_offset_ms / 1000:g} s{drift}."


def _repairs(recorder: Recorder, name: str, number: int) -> list[str]:
    found = [repair for repair in recorder.repairs if repair.who == name or number in repair.nodes]
    told = [_repair(repair) for repair in found[:MAX_LISTED]]
    if len(found) > MAX_LISTED:
        told.append(f"And so {len(found) - MAX_LISTED} more times.")
    return told


def _repair(repair: Repair) -> str:
    cause = _CAUSES.get(repair.cause, "it came back")
    whose = "everyone" if repair.cause == HEAL else "it"
    if repair.ended is None:
        return f"At {repair.began:.1f} s {cause}; {whose} has never got all that was missing since."
    if repair.ended == repair.began:
        return f"At {repair.began:.1f} s {cause}; nothing was missing."
    took = seconds(repair.ended - repair.began)
    return f"At {repair.began:.1f} s {cause}; {took} later {whose} had all that was missing."


def _end(recorder: Recorder, number: int) -> str:
    if not recorder.nodes[number].running:
        return "At the end it does not run."
    lacking = recorder.lacking(number)
    if not lacking:
        return f"At the end it has all {recorder.current:,} objects that count."
    names = ", ".join(_named(obj) for obj in lacking[:MAX_LISTED])
    more = f" and {len(lacking) - MAX_LISTED} more" if len(lacking) > MAX_LISTED else ""
    return f"At the end it lacks {len(lacking):,} of {recorder.current:,} objects: {names}{more}."


def _named(obj: Published) -> str:
    return f"the {obj.kind.replace('-', ' ')} {obj.name or obj.id.hex()[:12]}"


def _times(count: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(count, f"{count} times")
