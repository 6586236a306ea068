"""Which part of a scenario real processes can have, and what is said about the rest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from bnw.sim.scenario.schema import Scenario

NOT_SEEN: Final = {
    "traffic.entries": "the bytes of real nodes are encrypted",
    "traffic.gossip": "gossip is part of an encrypted stream",
    "traffic.gossip_new": "gossip is part of an encrypted stream",
    "traffic.gossip_lost": "gossip is part of an encrypted stream",
    "traffic.redundancy": "a real node does not say which copies it got twice",
    "traffic.overhead": "a real node does not say which copies it got twice",
    "catalog.proofs": "there are no adversaries",
    "attack.invalid_forwarded": "there are no adversaries",
    "attack.sent": "there are no adversaries",
    "calls.unsettled": "nobody takes calls up again",
    "calls.contradicted": "nobody takes calls up again",
}
"""The metrics that cannot be had of real nodes, and why."""


def possible_part(scenario: Scenario) -> tuple[Scenario, list[str]]:
    """The scenario without what real processes cannot have, and a sentence about each such thing."""
    crash = tuple(replace(table, unsynced=0.0, full_for=0.0) for table in scenario.crash)
    nodes = tuple(replace(group, mailboxes=()) for group in scenario.nodes)
    invoke = tuple(replace(table, take_up=False, copies=0) for table in scenario.invoke)
    possible = replace(scenario, nodes=nodes, invoke=invoke, adversary=(), clock=(), crash=crash)
    return possible, list(_not_possible(scenario))


def _not_possible(scenario: Scenario) -> Iterator[str]:
    network = scenario.network
    for adversary in scenario.adversary:
        yield (f"[[adversary]] {adversary.kind}: left out; attackers are changed nodes, which only the simulator has")
    for clock in scenario.clock:
        yield f"[[clock]] {clock.role}: left out; the clock of a process can be wrong from its start, but not jump"
    if network.gossip_loss:
        yield "[network] gossip_loss: left out; gossip is part of an encrypted stream here"
    if network.message_cost:
        yield "[network] message_cost: left out; the bytes are real ones, with all that is around them"
    if network.identity_records != "all":
        yield "[network] identity_records: all nodes publish one, as the node that ships does"
    for group in scenario.nodes:
        if group.clock_drift:
            yield f"[[nodes]] {group.role}: clock_drift left out; a process has the speed of this machine's clock"
        if group.write_time:
            yield f"[[nodes]] {group.role}: write_time left out; the disk is this machine's"
        if group.mailboxes:
            yield f"[[nodes]] {group.role}: mailboxes left out; a testnet's nodes have none"
        if group.start or group.spread:
            yield f"[[nodes]] {group.role}: a late node is there a second or more after its time; a process must start"
    for crash in scenario.crash:
        if crash.unsynced or crash.full_for:
            yield f"[[crash]] {crash.role}: SIGKILL without the disk faults (unsynced, full_for)"
    if any(table.take_up or table.copies for table in scenario.invoke):
        yield "[[invoke]] take_up, copies: left out; each call is made once, by one node"
    if scenario.partition:
        yield "[[partition]]: while it lasts, no new connection to a provider is possible, within a part either"
    if any(table.renew is not None for table in scenario.provide):
        yield "[[provide]] renew: left out; a real node renews its offers when it is time"
