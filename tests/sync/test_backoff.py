"""Waits after refusals: longer each time, never shorter than asked for, and bounded."""

from __future__ import annotations

import pytest

from bnw.sync.backoff import MAX_DELAY, MAX_PEERS_REMEMBERED, MIN_DELAY, Backoff
from bnw.sync.bounded import BoundedMemory, Claims
from bnw.transport.interface import PeerId

PEER = PeerId("peer")


def test_each_failure_in_a_row_doubles_the_wait_up_to_a_bound() -> None:
    backoff = Backoff()
    waits = [backoff.failed(PEER, 0.0, 0.0, first=10) for _ in range(12)]
    assert waits[:4] == [10, 20, 40, 80]
    assert waits[-1] == MAX_DELAY
    backoff.succeeded(PEER)
    assert backoff.failed(PEER, 0.0, 0.0, first=10) == 10


@pytest.mark.parametrize(("asked", "first"), [(0, MIN_DELAY), (3600, MAX_DELAY), (60, 60)])
def test_what_a_peer_asks_for_is_kept_within_bounds(asked: int, first: float) -> None:
    assert Backoff().failed(PEER, 0.0, 0.0, first=asked) == first


def test_the_end_of_a_wait_is_spread_over_half_as_much_again() -> None:
    assert Backoff().failed(PEER, 0.0, 1.0, first=100) == 150


def test_a_wait_is_remembered_until_it_is_over() -> None:
    backoff = Backoff()
    backoff.failed(PEER, 100.0, 0.0, first=10)
    assert backoff.remaining(PEER, 104.0) == 6
    assert backoff.remaining(PEER, 111.0) == 0
    assert backoff.remaining(PeerId("other"), 104.0) == 0


def test_the_peers_that_are_remembered_are_bounded() -> None:
    backoff = Backoff()
    for number in range(MAX_PEERS_REMEMBERED + 5):
        backoff.failed(PeerId(str(number)), 0.0, 0.0)
    assert len(backoff._peers) == MAX_PEERS_REMEMBERED
    assert backoff.remaining(PeerId("4"), 0.0) == 0


def test_a_bounded_memory_forgets_the_oldest_and_what_is_over() -> None:
    memory: BoundedMemory[str] = BoundedMemory(2)
    memory.add("a", 10)
    memory.add("b", 20)
    memory.add("a", 30)
    memory.add("c", 40)
    assert [memory.holds(key, 15) for key in "abc"] == [True, False, True]
    assert [memory.holds(key, 30) for key in "abc"] == [False, False, True]
    assert len(memory) == 1


def test_a_claim_lasts_until_everybody_who_made_it_has_released_it() -> None:
    claims: Claims[str] = Claims()
    claims.claim("ab")
    claims.claim("bc")
    claims.release("ab")
    assert [key in claims for key in "abc"] == [False, True, True]
    claims.release("bc")
    assert len(claims) == 0
