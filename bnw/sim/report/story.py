"""The worst node's story: what happened to the node that lacked most or waited longest."""

from __future__ import annotations

from typing import Final

from bnw.sim.evaluate import worst_nodes
from bnw.sim.play import Played
from bnw.sim.report.charts import short

MAX_LISTED: Final = 12


def worst_name(played: Played) -> str:
    order = worst_nodes(played.recorder)
    return played.recorder.nodes[order[0]].name if order else ""


def worst_story(played: Played) -> list[str]:
    """Sentences, in the order of events."""
    recorder = played.recorder
    order = worst_nodes(recorder)
    if not order:
        return ["There are no nodes."]
    number = order[0]
    node, place = recorder.nodes[number], played.plan.places[recorder.nodes[number].name]
    received, sent = played.node_traffic.get(node.name, (0, 0))
    told = [
        f"{node.name} has {len(place.neighbours)} neighbours"
        + (f" and is in {place.region}" if place.region else "")
        + f". It joined at {place.start:.1f} s and was started {node.starts} times; it crashed {node.crashes} times.",
    ]
    evil = sum(not played.plan.places[name].is_honest for name in place.neighbours)
    if evil:
        told.append(f"{evil} of its neighbours are adversaries.")
    if place.clock_offset_ms or place.clock_drift:
        told.append(f"Its clock was wrong by {place.clock_offset_ms / 1000:g} s and {place.clock_drift:.0f} ppm.")
    told.append(f"It received {short(float(received))} bytes and sent {short(float(sent))}.")
    told.append(f"{node.first:,} objects reached it for the first time.")
    if node.slowest_object >= 0:
        slow = recorder.objects[node.slowest_object]
        told.append(
            f"It waited longest, {node.slowest:.2f} s, for the {slow.kind} {slow.name or slow.id.hex()[:12]} that "
            f"{recorder.nodes[slow.publisher].name} published at {slow.at:.1f} s."
        )
    lacking = recorder.lacking(number) if node.running else []
    if not node.running:
        told.append("It does not run at the end.")
    elif lacking:
        names = ", ".join(obj.name or obj.id.hex()[:12] for obj in lacking[:MAX_LISTED])
        more = f" and {len(lacking) - MAX_LISTED} more" if len(lacking) > MAX_LISTED else ""
        told.append(f"At the end it lacks {len(lacking):,} of {recorder.current:,} objects: {names}{more}.")
    else:
        told.append(f"At the end it has all {recorder.current:,} objects.")
    told += [
        f"At {repair.began:.1f} s ({repair.cause}) it lacked something; "
        + ("it never got all of it." if repair.ended is None else f"{repair.ended - repair.began:.2f} s later nothing.")
        for repair in recorder.repairs[:2000]
        if repair.who == node.name
    ][:MAX_LISTED]
    return told
