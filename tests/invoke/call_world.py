"""A world of one call for exhaustive exploration: both machines, their disks, and what is under way between them.

Everything that can happen next in a state is a successor of it. A durable write is two steps, so that a crash can fall
before the write, between the write and the machine's hearing of it, and after that. A restore puts the provider's disk
back to anything it held before. Whatever was sent may arrive late, after crashes and restores too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from bnw.invoke.machines import provider as p
from bnw.invoke.machines import requester as r
from bnw.invoke.machines.endings import EXPIRED, Ending

COMPLETED = Ending("completed")
REFUSED = Ending("rejected", "invalid-input")
POLICY = Ending("rejected", "not-allowed")

Disk = tuple[str, int, Ending | None]
"""What the provider's store says of the call: phase, runs, and the ending of the receipt that is kept."""
Write = tuple[bool, Disk]
"""A write that was asked for: whether it is on the disk yet, and what."""


class World(NamedTuple):
    # The requester: its machine (None while it is down), its disk, its write
    asker: r.RequesterCall | None = r.RequesterCall()
    asker_disk: tuple[str, bool] = (r.SIGNED, False)
    asker_write: tuple[bool, tuple[str, bool]] | None = None
    receipt: Ending | None = None
    """The receipt that is being recorded or is kept."""
    copies: int = 0
    """Of the invocation, as the requester counts what has left it; 2 stands for all that is not surely fewer."""
    # The provider
    server: p.ProviderCall | None = p.ProviderCall()
    disk: Disk = (p.UNKNOWN, 0, None)
    past: tuple[Disk, ...] = ((p.UNKNOWN, 0, None),)
    write: Write | None = None
    checking: bool = False
    handling: bool = False
    known_new: bool = True
    # Under way
    invocations: int = 0
    cancels: int = 0
    confirmed: bool = False
    receipts: frozenset[Ending] = frozenset()
    # What may still go wrong or happen
    deliveries: int = 2
    crashes: int = 3
    restores: int = 1
    cancellations: int = 1
    timeouts: int = 1
    returns: int = 0
    # What has happened
    runs: int = 0
    issued: frozenset[Ending] = frozenset()


def asker_event(world: World, event: r.Event) -> World:
    assert world.asker is not None
    state, effects = r.requester_step(world.asker, event)
    world = world._replace(asker=state)
    for effect in effects:
        match effect:
            case r.KeepSent():
                world = world._replace(asker_write=(False, (r.SENT, state.cancel_asked)))
            case r.KeepReceipt():
                world = world._replace(asker_write=(False, (r.ANSWERED, state.cancel_asked)))
            case r.KeepAbandoned():
                world = world._replace(asker_write=(False, (r.ABANDONED, False)))
            case r.KeepCancel():
                world = world._replace(asker_disk=(world.asker_disk[0], True))
            case r.Deliver(with_cancel):
                world = world._replace(
                    invocations=min(2, world.invocations + 1),
                    copies=min(2, world.copies + 1),
                    cancels=int(with_cancel or world.cancels > 0),
                )
    return world


def server_event(world: World, event: p.Event) -> World:
    assert world.server is not None
    state, effects = p.provider_step(world.server, event)
    world = world._replace(server=state)
    for effect in effects:
        match effect:
            case p.KeepAccepted():
                world = world._replace(write=(False, (p.ACCEPTED, 0, None)))
            case p.KeepRunning(runs):
                world = world._replace(write=(False, (p.RUNNING, runs, None)))
            case p.KeepReceipt(ending):
                world = world._replace(write=(False, (p.FINISHED, state.runs, ending)), checking=False)
            case p.Confirm():
                world = world._replace(confirmed=True)
            case p.Check():
                world = world._replace(checking=True)
            case p.RunHandler():
                world = world._replace(handling=True, runs=world.runs + 1)
            case p.SendReceipt():
                assert world.disk[2] is not None, "only a receipt that is kept is sent"
                world = world._replace(receipts=world.receipts | {world.disk[2]})
    return world


def server_crash(world: World) -> World:
    return world._replace(server=None, write=None, checking=False, handling=False, known_new=False)


def server_start(world: World, *, idempotent: bool) -> World:
    phase, runs, ending = world.disk
    world = world._replace(server=p.ProviderCall(phase, ending, runs))
    return server_event(world, p.Recovered(idempotent))


def asker_start(world: World) -> World:
    return world._replace(asker=r.RequesterCall(*world.asker_disk))


def written(world: World) -> World:
    assert world.write is not None
    disk = world.write[1]
    issued = world.issued if disk[2] is None else world.issued | {disk[2]}
    past = world.past if disk in world.past else (*world.past, disk)
    return world._replace(write=(True, disk), disk=disk, past=past, issued=issued)


def progress(world: World, *, idempotent: bool, helpful: bool = False) -> Iterator[World]:
    """What can happen without anything going wrong. `helpful` leaves out what the participants may choose not to do."""
    if world.asker is not None:
        if world.asker_write is not None:
            is_written, value = world.asker_write
            if is_written:
                yield asker_event(world._replace(asker_write=None), r.Kept())
            else:
                yield world._replace(asker_write=(True, value), asker_disk=value)
        if world.confirmed:
            yield asker_event(world._replace(confirmed=False), r.Confirmed())
        for ending in sorted(world.receipts, key=str):
            known = world.asker.phase in {r.RECORDING, r.ANSWERED} and world.receipt == ending
            after = asker_event(world, r.ReceiptArrived(known))
            if after.asker is not None and after.asker.phase == r.RECORDING and world.asker.phase != r.RECORDING:
                after = after._replace(receipt=ending)
            yield after._replace(receipts=world.receipts - {ending})
        if world.deliveries > 0 and world.asker.phase in {r.SIGNED, r.SENT, r.CONFIRMED}:
            used = 0 if world.asker.phase == r.SIGNED else 1
            yield asker_event(world._replace(deliveries=world.deliveries - used), r.Ask())
    if world.server is not None:
        if world.write is not None:
            yield server_event(world._replace(write=None), p.Kept()) if world.write[0] else written(world)
        if world.invocations > 0:
            arrived = world._replace(invocations=world.invocations - 1)
            yield server_event(arrived, p.Arrived(None, world.known_new, idempotent))
            if not helpful:
                yield server_event(arrived, p.Arrived(POLICY, world.known_new, idempotent))
        if world.cancels:
            yield server_event(world._replace(cancels=0), p.CancelArrived())
        if world.checking and world.server.phase == p.ACCEPTED:
            yield server_event(world._replace(checking=False), p.Checked(None))
            if not helpful:
                yield server_event(world._replace(checking=False), p.Checked(REFUSED))
        if world.handling:
            yield server_event(world._replace(handling=False), p.HandlerEnded(COMPLETED))
            if world.server.phase == p.STOPPING:
                yield server_event(world._replace(handling=False), p.HandlerEnded(None))


def mishaps(world: World, *, idempotent: bool) -> Iterator[World]:
    """Crashes, restarts, the restore, a copy that comes back, and what the people and the clock do."""
    if world.returns and world.invocations:
        back = world._replace(invocations=world.invocations - 1, returns=world.returns - 1)
        is_the_only_one = world.copies == 1 and world.asker is not None
        yield asker_event(back, r.Returned()) if is_the_only_one else back
    if world.crashes:
        fewer = world._replace(crashes=world.crashes - 1)
        if world.server is not None:
            yield server_crash(fewer)
        if world.asker is not None:
            receipt = world.receipt if world.asker_disk[0] == r.ANSWERED else None
            # The count is not kept, so that from now on there may be any number of copies.
            yield fewer._replace(asker=None, asker_write=None, receipt=receipt, copies=2)
    if world.server is None:
        yield server_start(world, idempotent=idempotent)
        if world.restores:
            for disk in world.past:
                if disk != world.disk:
                    yield world._replace(disk=disk, restores=world.restores - 1)
    if world.asker is None:
        yield asker_start(world)
    elif world.cancellations:
        yield asker_event(world._replace(cancellations=0), r.CancelAsked())
    if world.timeouts and world.server is not None:
        yield server_event(world._replace(timeouts=0), p.TimeUp(EXPIRED))


def lone_copy_lost(world: World) -> World:
    """Nothing that was under way ever arrives."""
    return world._replace(invocations=0, cancels=0, confirmed=False, receipts=frozenset())
