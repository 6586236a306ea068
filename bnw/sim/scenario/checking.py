"""What the tables of a scenario must have to do with each other, and whether this machine can hold it."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any, Final

from bnw.sim.metrics import METRICS
from bnw.sim.regions import REGIONS
from bnw.sim.scenario.reading import MAX_FILE, build, fault, parse, suggestion
from bnw.sim.scenario.schema import CENSOR, FULL, RANDOM_REGULAR, ROLES, SMALL_WORLD, Scenario
from bnw.transport.bounds import MAX_CONNECTIONS
from bnw.wire.errors import ExitStatus, LocalError

BYTES_PER_NODE: Final = 110 * 1024
BYTES_PER_CONNECTION: Final = 12 * 1024
BYTES_PER_HELD_OBJECT: Final = 1600
"""What a node, a connection and an object held by a node take, rounded up from scripts/bench_sim.py."""
USABLE_MEMORY: Final = 0.8
"""Of this machine's memory."""


def load_scenario(path: Path) -> Scenario:
    """Read and check a file. Raises `LocalError` (`unreadable`, `scenario`), always with exit status 2."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE + 1)
    except OSError as error:
        raise LocalError(
            "unreadable",
            error.strerror or str(error),
            place=str(path),
            cure="check the path",
            exit_status=ExitStatus.USAGE,
        ) from None
    return read_scenario(data, str(path))


def read_scenario(data: bytes, place: str = "scenario", changes: dict[str, Any] | None = None) -> Scenario:
    """Read and check a scenario; `changes` are applied first (`bnw.sim.sweep`). Raises `LocalError` (`scenario`)."""
    from bnw.sim.scenario.changing import change

    document = parse(data, place)
    for key, value in (changes or {}).items():
        change(document, key, value, place)
    scenario = build(document, place)
    check(scenario, place)
    return scenario


def check(scenario: Scenario, place: str) -> None:
    """Raise `LocalError` (`scenario`) for what can never run or means nothing."""
    _check_roles(scenario, place)
    _check_topology(scenario, place)
    _check_times(scenario, place)
    _check_expectations(scenario, place)
    _check_memory(scenario, place)


def _check_roles(scenario: Scenario, place: str) -> None:
    if not scenario.nodes:
        raise fault(place, "there are no nodes", "add a table [[nodes]] with a role and a count")
    roles = Counter(group.role for group in scenario.nodes)
    for role, times in roles.items():
        if times > 1:
            raise fault(place, f"there are {times} tables [[nodes]] with the role {role!r}", "give each its own role")
        if role.startswith("evil-"):
            raise fault(place, f"the role {role!r} begins with evil-, which is for adversaries", "choose another name")
    providing = {table.by for table in scenario.provide}
    publishing = providing | {table.by for table in scenario.publish}
    references = [("publish", "by", table.by) for table in scenario.publish]
    references += [("provide", "by", table.by) for table in scenario.provide]
    for kind in ("invoke", "fetch", "follow"):
        for table in getattr(scenario, kind):
            references += [(kind, "by", table.by), (kind, "of", table.of)]
            able, verb = (providing, "provides") if kind == "invoke" else (publishing, "publishes")
            if table.of in roles and table.of not in able:
                raise fault(f"{place}: [[{kind}]]", f"of: nothing in the file {verb} as {table.of!r}")
    for kind in ("churn", "crash", "leave", "clock"):
        references += [(kind, "role", table.role) for table in getattr(scenario, kind)]
    references += [("adversary", "victim", table.victim) for table in scenario.adversary if table.victim is not None]
    references += [("nodes", "to", role) for group in scenario.nodes for role in group.to]
    references += [("nodes", "mailboxes", role) for group in scenario.nodes for role in group.mailboxes]
    for kind, key, role in references:
        if role not in roles:
            raise fault(f"{place}: [[{kind}]]", f"{key}: no nodes have the role {role!r}", suggestion(role, roles))
    for kind, tables in (("crash", scenario.crash), ("leave", scenario.leave)):
        for table in tables:
            there = next(group.count for group in scenario.nodes if group.role == table.role)
            if table.count is not None and table.count > there:
                raise fault(
                    f"{place}: [[{kind}]]",
                    f"count: {table.count:,} of role {table.role!r}, of which there are {there:,}",
                )


def _check_topology(scenario: Scenario, place: str) -> None:
    network, where = scenario.network, f"{place}: [network]"
    placed = sum(group.count for group in scenario.nodes if group.connected)
    placed += sum(group.count for group in scenario.adversary if group.victim is None)
    if not placed:
        raise fault(place, "no node takes part in the topology", "leave out `connected = false` for some group")
    for group in scenario.nodes:
        if not group.connected and not group.to and not any(a.victim == group.role for a in scenario.adversary):
            raise fault(f"{place}: [[nodes]] {group.role}", "connected is false and to is empty: nobody could reach it")
    if network.topology == RANDOM_REGULAR and placed > 1:
        degree = min(network.degree, placed - 1)
        if network.degree >= placed > 2:
            raise fault(
                where,
                f"degree: {network.degree} connections for each of {placed} nodes are not possible",
                f"at most {placed - 1} are, or use topology {FULL!r}",
            )
        if degree * placed % 2:
            raise fault(
                where,
                f"degree: {placed:,} nodes with {degree} connections each: an odd number of ends makes no pairs",
                "make one of the two numbers even",
            )
        if degree < 2 and placed > 2:
            raise fault(where, "degree: with 1 connection each, the network falls into pairs", "use 2 or more")
    if network.topology == SMALL_WORLD and placed > 2 and (network.degree < 2 or network.degree >= placed):
        raise fault(where, f"degree: a small world of {placed} nodes needs 2 to {placed - 1}")
    if network.topology in (FULL,) and placed - 1 > MAX_CONNECTIONS:
        raise fault(where, f"topology: a node has at most {MAX_CONNECTIONS} connections, fewer than {placed - 1:,}")
    for region in (*network.regions, *(region for cut in scenario.partition for region in cut.regions)):
        if region not in REGIONS:
            raise fault(where, f"regions: {region!r} is not in the table", suggestion(region, REGIONS))
    for cut in scenario.partition:
        for region in cut.regions:
            if region not in network.regions:
                raise fault(f"{place}: [[partition]]", f"regions: no nodes are in {region!r}")
    for table in scenario.adversary:
        if table.victim is not None and table.count > MAX_CONNECTIONS:
            raise fault(f"{place}: [[adversary]]", f"count: a victim takes at most {MAX_CONNECTIONS} connections")


def _check_times(scenario: Scenario, place: str) -> None:
    end = scenario.duration
    for kind in ("nodes", "publish", "provide", "invoke", "fetch", "follow", "churn", "adversary"):
        for table in getattr(scenario, kind):
            if table.start >= end:
                raise fault(f"{place}: [[{kind}]]", f"start: {table.start:g} s is not before the end at {end:g} s")
            stop = getattr(table, "stop", None)
            if stop is not None and stop <= table.start:
                raise fault(f"{place}: [[{kind}]]", "stop: not after start")
    for kind in ("crash", "leave", "clock", "partition"):
        for table in getattr(scenario, kind):
            if table.at >= end:
                raise fault(f"{place}: [[{kind}]]", f"at: {table.at:g} s is not before the end at {end:g} s")
    for cut in scenario.partition:
        if cut.heal <= cut.at:
            raise fault(f"{place}: [[partition]]", f"heal: {cut.heal:g} s is not after {cut.at:g} s")


def _check_expectations(scenario: Scenario, place: str) -> None:
    for number, expect in enumerate(scenario.expect, 1):
        where = f"{place}: [[expect]] number {number}"
        if expect.metric not in METRICS:
            raise fault(where, f"metric: there is no {expect.metric!r}", suggestion(expect.metric, METRICS))
        if expect.at_least is None and expect.at_most is None:
            raise fault(where, "neither at_least nor at_most", "say what the metric must be")
        if expect.at_least is not None and expect.at_most is not None and expect.at_least > expect.at_most:
            raise fault(where, "at_least is more than at_most, which nothing can be")
        if expect.at is not None and expect.at > scenario.duration:
            raise fault(where, f"at: {expect.at:g} s is after the end at {scenario.duration:g} s")


def estimated_memory(scenario: Scenario) -> int:
    """Bytes that a run takes at most, about."""
    nodes = scenario.honest + scenario.adversaries
    network = scenario.network
    degree = nodes - 1 if network.topology == FULL else max(2, network.degree)
    counts = {group.role: group.count for group in scenario.nodes}
    objects = sum(counts[table.by] * table.count for table in scenario.publish)
    objects += sum(2 * counts[table.by] * table.capabilities for table in scenario.provide)
    with_roles = {table.by for table in scenario.provide} | {table.by for table in scenario.invoke}
    records = scenario.honest if network.identity_records != ROLES else sum(counts[role] for role in with_roles)
    records += sum(table.count for table in scenario.adversary if table.kind == CENSOR)
    return nodes * (BYTES_PER_NODE + degree * BYTES_PER_CONNECTION + (objects + records) * BYTES_PER_HELD_OBJECT)


def usable_memory() -> int:
    """Bytes of this machine's memory that simulations may fill."""
    return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * USABLE_MEMORY)


def _check_memory(scenario: Scenario, place: str) -> None:
    need = estimated_memory(scenario)
    there = usable_memory()
    if need > there:
        raise fault(
            place,
            f"{scenario.honest + scenario.adversaries:,} nodes and what they hold take about "
            f"{need / 1024**3:,.1f} GiB; this machine can give {there / 1024**3:,.1f} GiB",
            'fewer nodes or objects, or identity_records = "roles" in [network]',
        )
