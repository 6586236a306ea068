"""The value of every metric at one moment of a run (`bnw.sim.metrics` says what each means)."""

from __future__ import annotations

from collections.abc import Sequence

from bnw.objects.rules import CATALOG
from bnw.sim.measure import HEAL, Recorder, percentile
from bnw.sim.plan import Plan
from bnw.sim.workload import Workload
from bnw.sim.world import World


async def evaluate(world: World, plan: Plan, recorder: Recorder, workload: Workload) -> dict[str, float]:
    """All metrics now."""
    recorder.retire_expired()
    await workload.taking_up.count()
    values = _delivery(recorder) | _repair(recorder) | _calls(workload) | _traffic(world, plan, recorder)
    values |= await _catalogs(world, plan, recorder)
    values["attack.sent"] = workload.log.attacks
    honest = {place.name for place in plan.honest}
    values["attack.invalid_forwarded"] = sum(
        count for name, count in world.network.traffic.marked_from.items() if name in honest
    )
    return values


def _delivery(recorder: Recorder) -> dict[str, float]:
    running = [node for node in recorder.nodes if node.running]
    pairs = recorder.pairs
    delays = sorted(recorder.delays)
    return {
        "nodes.honest": len(recorder.nodes),
        "nodes.running": len(running),
        "delivery.objects": len(recorder.objects),
        "delivery.current": recorder.current,
        "delivery.coverage": 1.0 if not pairs else 1 - recorder.missing / pairs,
        "delivery.missed": recorder.missing,
        "delivery.worst_coverage": min((node.held / recorder.current for node in running), default=1.0)
        if recorder.current
        else 1.0,
        "delivery.first": len(delays),
        "delivery.p50": percentile(delays, 0.5),
        "delivery.p95": percentile(delays, 0.95),
        "delivery.p99": percentile(delays, 0.99),
        "delivery.max": delays[-1] if delays else 0.0,
    }


def _repair(recorder: Recorder) -> dict[str, float]:
    now = recorder.now()
    taken = sorted(repair.ended - repair.began for repair in recorder.repairs if repair.ended is not None)
    ages = [now - repair.began for repair in recorder.repairs if repair.ended is None]
    heals = [(repair.ended or now) - repair.began for repair in recorder.repairs if repair.cause == HEAL]
    return {
        "repair.count": len(taken),
        "repair.open": len(ages),
        "repair.p50": percentile(taken, 0.5),
        "repair.max": max([*taken, *ages], default=0.0),
        "heal.max": max(heals, default=0.0),
    }


def _calls(workload: Workload) -> dict[str, float]:
    log = workload.log
    seconds, looks = sorted(log.seconds), sorted(log.look_seconds)
    return {
        "calls.made": log.made,
        "calls.completed": log.completed,
        "calls.completed_share": _share(log.completed, log.made),
        "calls.wrong": log.wrong,
        "calls.forgotten": log.forgotten,
        "calls.run_twice": sum(runs > 1 for runs in log.runs.values()),
        "calls.unsettled": log.unsettled,
        "calls.contradicted": log.contradicted,
        "calls.p50": percentile(seconds, 0.5),
        "calls.p99": percentile(seconds, 0.99),
        "fetch.made": log.looks,
        "fetch.found_share": _share(log.found, log.looks),
        "fetch.wrong": log.wrong_bytes,
        "fetch.p99": percentile(looks, 0.99),
        "follow.complete_share": workload.complete_share(),
    }


def _traffic(world: World, plan: Plan, recorder: Recorder) -> dict[str, float]:
    traffic = world.network.traffic
    nodes = [traffic.of(place.name) for place in plan.honest]
    bytes = sum(node.received_bytes for node in nodes)
    gossip = sum(node.gossip_received for node in nodes)
    new = sum(node.gossip_new for node in nodes)
    return {
        "traffic.entries": sum(node.received_entries for node in nodes),
        "traffic.bytes": bytes,
        "traffic.bytes_per_node": bytes / max(1, len(nodes)),
        "traffic.gossip": gossip,
        "traffic.gossip_new": new,
        "traffic.gossip_lost": traffic.gossip_lost,
        "traffic.redundancy": (gossip - new + recorder.known_copies) / max(1, recorder.new_copies),
        "traffic.overhead": bytes / max(1, recorder.new_bytes),
    }


async def _catalogs(world: World, plan: Plan, recorder: Recorder) -> dict[str, float]:
    """Compared by what right clocks say is live; nodes whose own clocks differ may differ about what has expired."""
    now = world.environment.now_ms()
    views: set[tuple[int, bytes]] = set()
    proofs = running = foreign = 0
    for place in plan.honest:
        node = world.nodes[place.name]
        if not node.is_running:
            continue
        running += 1
        summary = await node.store.scope_summary(CATALOG, now=now)
        views.add((summary.count, summary.fingerprint))
        proofs += bool(await node.store.equivocations(limit=1))
        foreign = max(foreign, node.store.count_foreign(recorder.signers))
    return {
        "catalog.views": len(views),
        "catalog.proofs": _share(proofs, running) if running else 0.0,
        "catalog.foreign": foreign,
    }


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 1.0


def worst_nodes(recorder: Recorder) -> Sequence[int]:
    """Numbers of honest nodes, the one that fared worst first: by what it lacks, then by its slowest arrival."""
    order = range(len(recorder.nodes))
    return sorted(
        order,
        key=lambda at: (
            -(recorder.current - recorder.nodes[at].held if recorder.nodes[at].running else 0),
            -recorder.nodes[at].slowest,
            at,
        ),
    )
