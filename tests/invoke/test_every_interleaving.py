"""One call in every order of everything: deliveries, a refused copy, crashes, a restore, a cancellation, a deadline.

In every state that can be reached: the handler has run at most once (unless it was declared idempotent), and as soon as
nothing more goes wrong the requester comes to exactly one final receipt.
"""

from __future__ import annotations

import pytest
from call_world import World, asker_start, lone_copy_lost, mishaps, progress, server_start

from bnw.invoke.machines import provider as p
from bnw.invoke.machines import requester as r


def explore(start: World, *, idempotent: bool) -> set[World]:
    seen, frontier = {start}, [start]
    while frontier:
        world = frontier.pop()
        for after in (*progress(world, idempotent=idempotent), *mishaps(world, idempotent=idempotent)):
            if after not in seen:
                check_safety(after, idempotent=idempotent)
                seen.add(after)
                frontier.append(after)
    return seen


def check_safety(world: World, *, idempotent: bool) -> None:
    if not idempotent:
        assert world.runs <= 1, world
        definite = [ending for ending in world.issued if ending.status != "interrupted"]
        assert len(definite) <= 1, f"receipts that contradict each other: {world}"
    if world.asker_disk[0] == r.ABANDONED:
        assert world.runs == 0 and not world.issued, "what was abandoned never left"


def settle(world: World, settled: dict[World, object], *, idempotent: bool) -> object:
    """How the call ends if from here on both nodes are up and talk: the receipt, or that it was abandoned."""
    if world.server is None:
        world = server_start(world, idempotent=idempotent)
    if world.asker is None:
        world = asker_start(world)
    path: list[World] = []
    for _ in range(100):
        assert world.asker is not None
        if world in settled:
            break
        path.append(world)
        if world.asker.phase == r.ABANDONED:
            settled[world] = r.ABANDONED
            break
        if world.asker.phase == r.ANSWERED:
            assert world.receipt is not None
            settled[world] = world.receipt
            break
        # Asked again only when all that was under way has come to its end, as a patient requester does.
        quiet = world._replace(deliveries=0)
        steps = [*progress(quiet, idempotent=idempotent, helpful=True)]
        steps = steps or [*progress(world._replace(deliveries=1), idempotent=idempotent, helpful=True)]
        world = steps[0]._replace(deliveries=0)
    assert world in settled, f"no receipt after 100 steps: {path[-1]}"
    for passed in path:
        settled[passed] = settled[world]
    return settled[world]


def without_counters(world: World) -> World:
    return world._replace(
        deliveries=0,
        copies=0,
        crashes=0,
        restores=0,
        cancellations=0,
        timeouts=0,
        returns=0,
        past=(),
        runs=0,
        issued=frozenset(),
    )


@pytest.mark.parametrize("idempotent", [False, True], ids=["runs-once", "idempotent"])
def test_a_call_never_runs_twice_and_always_comes_to_one_receipt(
    idempotent: bool, record_property: pytest.RecordProperty, capsys: pytest.CaptureFixture[str]
) -> None:
    # Cancellation and deadline multiply the orders, so they get worlds of their own beside the one with all crashes.
    # Idempotent calls have many more orders and less to lose; they get fewer crashes.
    crashes = 1 if idempotent else 3
    worlds = [
        World(crashes=crashes, cancellations=0, timeouts=0),
        World(crashes=1, timeouts=0),
        World(crashes=1, cancellations=0),
        World(crashes=0),
        World(crashes=1, cancellations=0, timeouts=0, returns=1),
    ]
    seen = set().union(*(explore(world, idempotent=idempotent) for world in worlds))
    settled: dict[World, object] = {}
    endings = set()
    for world in {without_counters(world) for world in seen}:
        endings.add(settle(world, settled, idempotent=idempotent))
        endings.add(settle(lone_copy_lost(world), settled, idempotent=idempotent))
    with capsys.disabled():
        print(f"\n{len(seen):,} states of a call visited ({'idempotent' if idempotent else 'runs once'})")
    record_property("states", len(seen))
    assert len(seen) > 10_000
    statuses = {getattr(ending, "status", ending) for ending in endings}
    assert statuses == {"completed", "rejected", "cancelled", "expired", "abandoned"} | (
        set() if idempotent else {"interrupted"}
    )
    if idempotent:
        assert any(world.runs > 1 for world in seen)


def test_the_exploration_would_notice_a_provider_that_runs_what_it_may_have_run_before() -> None:
    """With rule 3 taken away, a restore makes a call run twice."""
    forgetful = World(known_new=True)
    found = False
    seen, frontier = {forgetful}, [forgetful]
    while frontier and not found:
        world = frontier.pop()
        for after in (*progress(world, idempotent=False), *mishaps(world, idempotent=False)):
            trusting = after._replace(known_new=True)
            if trusting.runs > 1:
                found = True
            if trusting not in seen:
                seen.add(trusting)
                frontier.append(trusting)
    assert found


def test_a_refused_call_stays_refused_whatever_the_policy_says_later() -> None:
    refused = p.ProviderCall(p.FINISHED)
    after, effects = p.provider_step(refused, p.Arrived(None, True))
    assert after == refused
    assert p.RunHandler() not in effects


def test_the_exploration_would_notice_a_requester_that_gives_up_what_it_has_sent_twice() -> None:
    """If a copy that came back counted although another is out there, an abandoned call would run."""
    start = World(crashes=0, restores=0, cancellations=0, timeouts=0, returns=1)
    seen, frontier = {start}, [start]
    found = False
    while frontier and not found:
        world = frontier.pop()
        careless = world._replace(copies=min(1, world.copies))
        for after in (*progress(careless, idempotent=False), *mishaps(careless, idempotent=False)):
            found |= after.asker_disk[0] == r.ABANDONED and after.runs > 0
            if after not in seen:
                seen.add(after)
                frontier.append(after)
    assert found
