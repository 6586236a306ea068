"""A call at its provider, from its arrival to its receipt.

Durable are `accepted`, `running` and `finished`; after a crash a call is in the one that was kept last, or `unknown`. A
call runs at most once because of three rules:

1. The handler starts only after `running` has been kept.
2. A call that a start of the node finds in its store, accepted or running, does not run (again), unless its handler was
   declared idempotent: an older copy of the store, restored from a backup, says `accepted` of a call that has run.
3. A call that is not in the store runs only if it is known to be new: made since this start, or handed over by
   somebody who will not hand it over again. For the same reason: an older store does not know what has run.

An idempotent call may run again, at most `MAX_RUNS` times, so that one that ends its node does not do so for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from bnw.invoke.machines.endings import (
    CANCELLED,
    INTERRUPTED,
    NOT_KNOWN_TO_BE_NEW,
    RESTARTED,
    Ending,
)
from bnw.invoke.machines.table import Effect, Event, Row, step

MAX_RUNS = 3
"""How often an idempotent call may be begun."""

UNKNOWN: Final = "unknown"
ACCEPTING: Final = "accepting"
ACCEPTED: Final = "accepted"
STARTING: Final = "starting"
RUNNING: Final = "running"
STOPPING: Final = "stopping"
ENDING: Final = "ending"
FINISHED: Final = "finished"

LIVE: Final = (ACCEPTING, ACCEPTED, STARTING, RUNNING, STOPPING, ENDING)
DURABLE: Final = (ACCEPTED, RUNNING, FINISHED)


@dataclass(frozen=True, slots=True)
class ProviderCall:
    """`ending` is what the call ends with, once that is decided; `runs` is how often it was begun."""

    phase: str = UNKNOWN
    ending: Ending | None = None
    runs: int = 0


# Events


@dataclass(frozen=True, slots=True)
class Arrived(Event):
    """The invocation was delivered. `refusal` is what the cheap checks say, `known_new` as rule 3 has it."""

    refusal: Ending | None = None
    known_new: bool = True
    idempotent: bool = False


@dataclass(frozen=True, slots=True)
class Recovered(Event):
    """The node has started and found the call in its store."""

    idempotent: bool = False


@dataclass(frozen=True, slots=True)
class Checked(Event):
    """The input is here and all checks are done, those of authority and time last."""

    refusal: Ending | None = None


@dataclass(frozen=True, slots=True)
class Kept(Event):
    """What was asked to be kept is durable."""


@dataclass(frozen=True, slots=True)
class CancelArrived(Event):
    """The requester asks for the call to be stopped."""


@dataclass(frozen=True, slots=True)
class TimeUp(Event):
    """A deadline, total or inactivity, has passed."""

    ending: Ending


@dataclass(frozen=True, slots=True)
class HandlerEnded(Event):
    """The handler has answered, failed, or been stopped; None if it was stopped without an answer."""

    ending: Ending | None


# Effects


@dataclass(frozen=True, slots=True)
class KeepAccepted(Effect):
    """Keep the invocation and the fact that it was accepted."""


@dataclass(frozen=True, slots=True)
class KeepRunning(Effect):
    """Keep that the handler is about to run, for the `runs`th time."""

    runs: int


@dataclass(frozen=True, slots=True)
class KeepReceipt(Effect):
    """Sign a receipt for `ending` and keep it. `known` is false for a call of which nothing else is kept."""

    ending: Ending
    known: bool


@dataclass(frozen=True, slots=True)
class Confirm(Effect):
    """Tell whoever delivered the invocation that it is safe here."""


@dataclass(frozen=True, slots=True)
class Check(Effect):
    """Let the call wait for its turn, then do all checks."""


@dataclass(frozen=True, slots=True)
class RunHandler(Effect):
    pass


@dataclass(frozen=True, slots=True)
class StopHandler(Effect):
    """Ask the handler to stop, and end it if it does not."""


@dataclass(frozen=True, slots=True)
class SendReceipt(Effect):
    pass


Do = Callable[[ProviderCall, Any], tuple[ProviderCall, Sequence[Effect]]]


def _doing(*effects: Effect) -> Do:
    return lambda state, event: (state, effects)


def _end(ending: Ending) -> Do:
    return lambda state, event: _end_with(state, ending)


def _end_with(state: ProviderCall, ending: Ending) -> tuple[ProviderCall, Sequence[Effect]]:
    return replace(state, ending=ending), (KeepReceipt(ending, known=state.phase != UNKNOWN),)


def _refuse(state: ProviderCall, event: Arrived | Checked) -> tuple[ProviderCall, Sequence[Effect]]:
    assert event.refusal is not None
    return _end_with(state, event.refusal)


def _start(state: ProviderCall, event: Checked) -> tuple[ProviderCall, Sequence[Effect]]:
    return replace(state, runs=state.runs + 1), (KeepRunning(state.runs + 1),)


def _time_up(state: ProviderCall, event: TimeUp) -> tuple[ProviderCall, Sequence[Effect]]:
    return _end_with(state, event.ending)


def _remember_cancel(state: ProviderCall, event: Event) -> tuple[ProviderCall, Sequence[Effect]]:
    return replace(state, ending=state.ending or CANCELLED), ()


def _remember_time(state: ProviderCall, event: TimeUp) -> tuple[ProviderCall, Sequence[Effect]]:
    return replace(state, ending=state.ending or event.ending), ()


def _end_as_remembered(state: ProviderCall, event: Event) -> tuple[ProviderCall, Sequence[Effect]]:
    assert state.ending is not None
    return _end_with(state, state.ending)


def _confirm_and_end(state: ProviderCall, event: Event) -> tuple[ProviderCall, Sequence[Effect]]:
    state, effects = _end_as_remembered(state, event)
    return state, (Confirm(), *effects)


def _stop_cancelled(state: ProviderCall, event: Event) -> tuple[ProviderCall, Sequence[Effect]]:
    return replace(state, ending=CANCELLED), (StopHandler(),)


def _stop_late(state: ProviderCall, event: TimeUp) -> tuple[ProviderCall, Sequence[Effect]]:
    return replace(state, ending=event.ending), (StopHandler(),)


def _handler_ended(state: ProviderCall, event: HandlerEnded) -> tuple[ProviderCall, Sequence[Effect]]:
    """A handler that answered before it heard of the request to stop has answered: the receipt is the truth."""
    ending = event.ending or state.ending
    assert ending is not None
    return _end_with(state, ending)


def _is_refused(state: ProviderCall, event: Arrived | Checked) -> bool:
    return event.refusal is not None


def _may_be_old(state: ProviderCall, event: Arrived) -> bool:
    return not event.known_new and not event.idempotent


def _is_to_end(state: ProviderCall, event: Event) -> bool:
    return state.ending is not None


def _may_run_again(state: ProviderCall, event: Recovered) -> bool:
    return event.idempotent and state.runs < MAX_RUNS


ROWS: Final[tuple[Row[ProviderCall], ...]] = (
    # Arrival
    Row((UNKNOWN,), Arrived, ENDING, _end(NOT_KNOWN_TO_BE_NEW), "may be old, not idempotent", _may_be_old),
    Row((UNKNOWN,), Arrived, ENDING, _refuse, "refused", _is_refused),
    Row((UNKNOWN,), Arrived, ACCEPTING, _doing(KeepAccepted())),
    Row((ACCEPTING,), CancelArrived, None, _remember_cancel),
    Row((ACCEPTING,), Kept, ENDING, _confirm_and_end, "to be stopped", _is_to_end),
    Row((ACCEPTING,), Kept, ACCEPTED, _doing(Confirm(), Check())),
    Row((ACCEPTED, STARTING, RUNNING, STOPPING), Arrived, None, _doing(Confirm())),
    Row((FINISHED,), Arrived, None, _doing(Confirm(), SendReceipt())),
    # After a start of the node
    Row((ACCEPTED,), Recovered, None, _doing(Check()), "idempotent", _may_run_again),
    Row((ACCEPTED,), Recovered, ENDING, _end(RESTARTED), "not idempotent"),
    Row((RUNNING,), Recovered, ACCEPTED, _doing(Check()), "idempotent, runs left", _may_run_again),
    Row((RUNNING,), Recovered, ENDING, _end(INTERRUPTED), "not idempotent, or no runs left"),
    # Before the run
    Row((ACCEPTED,), CancelArrived, ENDING, _end(CANCELLED)),
    Row((ACCEPTED,), TimeUp, ENDING, _time_up),
    Row((ACCEPTED,), Checked, ENDING, _refuse, "refused", _is_refused),
    Row((ACCEPTED,), Checked, STARTING, _start),
    Row((STARTING,), CancelArrived, None, _remember_cancel),
    Row((STARTING,), TimeUp, None, _remember_time),
    Row((STARTING,), Kept, ENDING, _end_as_remembered, "to be stopped", _is_to_end),
    Row((STARTING,), Kept, RUNNING, _doing(RunHandler())),
    # The run
    Row((RUNNING,), CancelArrived, STOPPING, _stop_cancelled),
    Row((RUNNING,), TimeUp, STOPPING, _stop_late),
    Row((RUNNING, STOPPING), HandlerEnded, ENDING, _handler_ended),
    # The end
    Row((ENDING,), Kept, FINISHED, _doing(SendReceipt())),
    Row((FINISHED,), CancelArrived, None, _doing(SendReceipt())),
)


def provider_step(state: ProviderCall, event: Event) -> tuple[ProviderCall, tuple[Effect, ...]]:
    return step(ROWS, state, event)
