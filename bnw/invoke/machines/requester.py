"""A call at its requester, from the signed invocation to the receipt.

Durable are `signed`, `sent`, `answered` and `abandoned`. `sent` is kept before the invocation leaves this node for the
first time, so a call in `signed` has never left it: it can be abandoned, and another provider be asked, without any
chance that the first one runs it too. From `sent` on only a receipt settles the call, with one exception: if a single
copy has left this node in all, and whoever got it has answered that nothing of it was kept, there is no copy any more,
and the call can be abandoned as well. Asking again is always safe.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from bnw.invoke.machines.table import Effect, Event, Row, step

SIGNED: Final = "signed"
SENDING: Final = "sending"
SENT: Final = "sent"
CONFIRMED: Final = "confirmed"
RECORDING: Final = "recording"
ANSWERED: Final = "answered"
ABANDONING: Final = "abandoning"
ABANDONED: Final = "abandoned"

DURABLE: Final = (SIGNED, SENT, ANSWERED, ABANDONED)


@dataclass(frozen=True, slots=True)
class RequesterCall:
    """`cancel_asked` goes with every delivery from then on."""

    phase: str = SIGNED
    cancel_asked: bool = False


# Events


@dataclass(frozen=True, slots=True)
class Ask(Event):
    """It is time to ask the provider, for the first time or again."""


@dataclass(frozen=True, slots=True)
class Kept(Event):
    """What was asked to be kept is durable."""


@dataclass(frozen=True, slots=True)
class Confirmed(Event):
    """The provider says that the invocation is safe there."""


@dataclass(frozen=True, slots=True)
class ReceiptArrived(Event):
    """A receipt by the provider, for this call and to this requester. `known` if it is the one that is kept."""

    known: bool = False


@dataclass(frozen=True, slots=True)
class CancelAsked(Event):
    pass


@dataclass(frozen=True, slots=True)
class GiveUp(Event):
    """The provider cannot be reached; the caller would rather ask another."""


@dataclass(frozen=True, slots=True)
class Returned(Event):
    """The only copy that has ever left this node was refused, and nothing of it was kept."""


# Effects


@dataclass(frozen=True, slots=True)
class KeepSent(Effect):
    """Keep that a copy of the invocation may be out there."""


@dataclass(frozen=True, slots=True)
class KeepReceipt(Effect):
    pass


@dataclass(frozen=True, slots=True)
class KeepCancel(Effect):
    """Keep that the call is to be cancelled, with the signed cancellation."""


@dataclass(frozen=True, slots=True)
class KeepAbandoned(Effect):
    """Keep that this invocation must never leave this node, or never again."""


@dataclass(frozen=True, slots=True)
class Deliver(Effect):
    """Hand the invocation to the provider, and the cancellation if there is one."""

    with_cancel: bool


@dataclass(frozen=True, slots=True)
class Tell(Effect):
    """The call has its receipt."""


@dataclass(frozen=True, slots=True)
class CompareReceipts(Effect):
    """A second receipt came. Two that contradict each other are kept as proof against the provider."""


Do = Callable[[RequesterCall, Any], tuple[RequesterCall, Sequence[Effect]]]


def _doing(*effects: Effect) -> Do:
    return lambda state, event: (state, effects)


def _deliver(state: RequesterCall, event: Event) -> tuple[RequesterCall, Sequence[Effect]]:
    return state, (Deliver(state.cancel_asked),)


def _cancel(state: RequesterCall, event: Event) -> tuple[RequesterCall, Sequence[Effect]]:
    return replace(state, cancel_asked=True), (KeepCancel(), Deliver(with_cancel=True))


def _is_other(state: RequesterCall, event: ReceiptArrived) -> bool:
    return not event.known


ROWS: Final[tuple[Row[RequesterCall], ...]] = (
    # Sending
    Row((SIGNED,), Ask, SENDING, _doing(KeepSent())),
    Row((SENDING,), Kept, SENT, _deliver),
    Row((SENT, CONFIRMED), Ask, None, _deliver),
    Row((SENT,), Confirmed, CONFIRMED, _doing()),
    # Giving up while there is no copy anywhere else
    Row((SIGNED,), CancelAsked, ABANDONING, _doing(KeepAbandoned())),
    Row((SIGNED,), GiveUp, ABANDONING, _doing(KeepAbandoned())),
    Row((SENT,), Returned, ABANDONING, _doing(KeepAbandoned())),
    Row((ABANDONING,), Kept, ABANDONED, _doing(Tell())),
    # Cancelling
    Row((SENT, CONFIRMED), CancelAsked, None, _cancel),
    # The receipt
    Row((SENT, CONFIRMED), ReceiptArrived, RECORDING, _doing(KeepReceipt())),
    Row((RECORDING,), Kept, ANSWERED, _doing(Tell())),
    Row((ANSWERED,), ReceiptArrived, None, _doing(CompareReceipts()), "another one", _is_other),
)


def requester_step(state: RequesterCall, event: Event) -> tuple[RequesterCall, tuple[Effect, ...]]:
    return step(ROWS, state, event)
