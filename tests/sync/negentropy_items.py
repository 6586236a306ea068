"""Items for the tests of Negentropy, made from seeds."""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass

from bnw.sync.negentropy.coding import item_key
from bnw.sync.negentropy.index import BlockedIndex
from bnw.sync.negentropy.reconciler import Initiator, Responder

Item = tuple[int, bytes]
"""A timestamp and an id."""

SECONDS = 1_700_000_000


def make_items(count: int, seed: str, *, start: int = SECONDS, per_timestamp: int = 3) -> list[Item]:
    """Different items, about `per_timestamp` of them to each timestamp in use, so that ids have to break ties."""
    draw = random.Random(seed)
    span = count // per_timestamp + 1
    return [
        (start + draw.randrange(span), hashlib.sha256(f"{seed} {number}".encode()).digest()) for number in range(count)
    ]


def index_of(items: list[Item]) -> BlockedIndex:
    return BlockedIndex(item_key(*item) for item in items)


def only_in(these: list[Item], others: list[Item]) -> list[bytes]:
    """The ids that are in `these` and not in `others`, ordered."""
    return sorted(id for _, id in set(these) - set(others))


@dataclass
class Outcome:
    """What an initiator learnt, and what it took."""

    have: list[bytes]
    need: list[bytes]
    """In any order; an id may be there several times when messages have been cut short."""
    round_trips: int
    sent: list[int]
    """Sizes of the initiator's messages."""
    received: list[int]


def reconcile(initiator: Initiator, responder: Responder, *, most: int = 10_000) -> Outcome:
    outcome = Outcome([], [], 0, [], [])
    message: bytes | None = initiator.start()
    while message is not None:
        assert outcome.round_trips < most, "no end in sight"
        outcome.round_trips += 1
        outcome.sent.append(len(message))
        answer = responder.answer(message)
        outcome.received.append(len(answer))
        step = initiator.take(answer)
        outcome.have += step.have
        outcome.need += step.need
        message = step.message
    return outcome
