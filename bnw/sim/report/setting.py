"""What was simulated, in words for somebody who did not write the scenario."""

from __future__ import annotations

from collections.abc import Iterator

from bnw.sim.play import Played
from bnw.sim.regions import SOURCE
from bnw.sim.report.markup import Child, Markup, facts, joined, tag
from bnw.sim.report.words import seconds, share, size
from bnw.sim.scenario.schema import Network, Scenario


def setting(played: Played, *, is_real: bool) -> Markup:
    scenario = played.scenario
    degrees = sorted(len(place.neighbours) for place in played.plan.places.values())
    spread = f"{degrees[0]}" if degrees[0] == degrees[-1] else f"{degrees[0]} to {degrees[-1]}"
    nodes = f"{scenario.honest:,} honest {'node' if scenario.honest == 1 else 'nodes'}"
    if scenario.adversaries:
        nodes += f" and {scenario.adversaries:,} {'adversary' if scenario.adversaries == 1 else 'adversaries'}"
    if is_real:
        text = (
            f"This was no simulation: {nodes} ran as processes on one machine for {seconds(played.until)} of real "
            "time, and spoke libp2p over loopback, through relays that delay what passes as the scenario's links do."
        )
    else:
        text = (
            f"{nodes.capitalize()} lived through {seconds(played.until)} of virtual time. The nodes are the ones that "
            "ship; the network, the disks and the clocks around them are simulated."
        )
    if played.until < scenario.duration:
        text += f" The scenario lasts {seconds(scenario.duration)}; this run was stopped before."
    rows: list[tuple[Child, Child]] = [
        ("nodes", ", ".join(f"{group.count:,} {group.role}" for group in scenario.nodes)),
        ("adversaries", _lines(_adversaries(scenario)) or "none"),
        ("topology", f"{scenario.network.topology}; {spread} neighbours each"),
        *_links(scenario.network),
        ("what they do", _lines(_work(scenario)) or "nothing but being connected"),
        ("troubles", _lines(_troubles(scenario)) or "none"),
        ("seed", str(played.seed)),
    ]
    return joined(tag("p", text), facts(rows))


def not_as_in_the_file(not_applied: list[str]) -> Markup:
    """What real processes cannot have of a scenario."""
    if not not_applied:
        return joined()
    items = (tag("li", text) for text in not_applied)
    return tag("div", tag("strong", "Not as in the file"), tag("ul", *items), class_="note")


def _lines(sentences: Iterator[str]) -> Markup:
    return joined(*(tag("div", text) for text in sentences))


def _links(network: Network) -> Iterator[tuple[str, str]]:
    if network.regions:
        yield "regions", f"{', '.join(network.regions)}; delays between them from {SOURCE}"
    delay = f"{seconds(network.latency)} one way" + (", besides the delay between regions" if network.regions else "")
    if network.jitter:
        delay += f", and {seconds(network.jitter)} of jitter on average ({network.jitter_shape})"
    speed = f"{size(network.bandwidth)} a second" if network.bandwidth else "as much as is sent"
    yield "links", f"{delay}; they carry {speed}"
    losses = [f"{share(network.loss)} of the packets, which are sent again"] if network.loss else []
    losses += [f"{share(network.gossip_loss)} of the gossip, for good"] if network.gossip_loss else []
    yield "lost on the way", ", ".join(losses) or "nothing"


def _work(scenario: Scenario) -> Iterator[str]:
    for job in scenario.publish:
        versions = f", each {job.versions} times anew" if job.versions > 1 else ""
        every = f", one every {seconds(job.every)}" if job.count * job.versions > 1 else ""
        back = f"; each is withdrawn after {seconds(job.withdraw_after)}" if job.withdraw_after is not None else ""
        yield f"Each {job.by} publishes {_count(job.count)}{versions}, from {seconds(job.start)} on{every}{back}."
    for offer in scenario.provide:
        what = f"{_count(offer.capabilities)} from {seconds(offer.start)} on"
        yield f"Each {offer.by} provides {what}, and thinks for {seconds(offer.thinking)}."
    for call in scenario.invoke:
        when = f"from {seconds(call.start)} on, every {seconds(call.every)}"
        yield f"Each {call.by} calls a {call.of} {call.count:,} {'time' if call.count == 1 else 'times'}, {when}."
    for look in scenario.fetch:
        yield f"Each {look.by} looks at all that {look.of} publish, from {seconds(look.start)} on."
    for follow in scenario.follow:
        yield f"Each {follow.by} follows all that {follow.of} publish, from {seconds(follow.start)} on."


def _troubles(scenario: Scenario) -> Iterator[str]:
    for cut in scenario.partition:
        part = ", ".join(cut.regions) if cut.regions else f"{share(cut.share)} of the nodes"
        yield f"From {seconds(cut.at)} to {seconds(cut.heal)} nothing passes between {part} and the rest."
    for churn in scenario.churn:
        how = "without a word" if churn.crash else "with a goodbye"
        who = "All" if churn.share == 1 else f"{share(churn.share)} of"
        yield (
            f"{who} {churn.role} come and go {how}: they stay {seconds(churn.session)} and are away "
            f"{seconds(churn.pause)} on average ({churn.session_shape}, {churn.pause_shape})."
        )
    for crash in scenario.crash:
        back = f"; back {seconds(crash.back_after)} later" if crash.back_after is not None else " for good"
        disk = f"; their disks lose the last {seconds(crash.unsynced)}" if crash.unsynced else ""
        disk += f"; their disks are full for {seconds(crash.full_for)} before" if crash.full_for else ""
        verb = "crashes" if crash.count == 1 else "crash"
        yield f"{crash.count} {crash.role} {verb} at {seconds(crash.at)}{back}{disk}."
    for leave in scenario.leave:
        how = "vanish without a word" if leave.crash else "say goodbye and are gone"
        yield f"At {seconds(leave.at)}, {leave.count or 'all'} {leave.role} {how} for good."
    for clock in scenario.clock:
        yield f"At {seconds(clock.at)} the clocks of {clock.role} jump by {clock.by:g} s."
    for group in scenario.nodes:
        if group.start or group.spread:
            spread = f", within {seconds(group.spread)}" if group.spread else ""
            verb = "joins" if group.count == 1 else "join"
            yield f"{group.count} {group.role} {verb} at {seconds(group.start)}{spread}."
        if group.clock_skew or group.clock_offset or group.clock_drift:
            yield f"The clocks of {group.role} are wrong."


def _adversaries(scenario: Scenario) -> Iterator[str]:
    for table in scenario.adversary:
        around = f", all around {table.victim}-0" if table.victim else ""
        stop = "" if table.stop is None else f" to {seconds(table.stop)}"
        yield f"{table.count:,} × {table.kind}, from {seconds(table.start)}{stop}{around}"


def _count(count: int) -> str:
    return "one capability" if count == 1 else f"{count:,} capabilities"
