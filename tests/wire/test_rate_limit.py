"""The rate limit of one neighbour (design section 10: our own overload is never the sender's fault)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bnw.wire.environment import random_below
from bnw.wire.rate_limit import MAX_PEERS_TRACKED, RateLimiter


def allowed(limiter: RateLimiter, peer: str, now: float, tries: int) -> int:
    return sum(limiter.allows(peer, now) for _ in range(tries))


def test_a_burst_passes_at_once_and_no_more() -> None:
    assert allowed(RateLimiter(rate=200, burst=2000), "p", 0.0, 5000) == 2000


def test_after_a_burst_the_rate_passes() -> None:
    limiter = RateLimiter(rate=200, burst=2000)
    allowed(limiter, "p", 0.0, 2000)
    assert allowed(limiter, "p", 1.0, 5000) == 200
    assert allowed(limiter, "p", 1.5, 5000) == 100


def test_rest_does_not_save_up_more_than_a_burst() -> None:
    limiter = RateLimiter(rate=200, burst=2000)
    allowed(limiter, "p", 0.0, 2000)
    assert allowed(limiter, "p", 3600.0, 5000) == 2000


def test_one_peer_does_not_use_up_what_another_may_send() -> None:
    limiter = RateLimiter(rate=1, burst=10)
    assert allowed(limiter, "loud", 0.0, 100) == 10
    assert allowed(limiter, "quiet", 0.0, 100) == 10


def test_no_more_peers_are_remembered_than_the_bound_and_the_recent_ones_stay() -> None:
    limiter = RateLimiter(rate=0, burst=1)
    assert limiter.allows("first", 0.0)
    assert limiter.allows("second", 0.0)
    for number in range(MAX_PEERS_TRACKED - 2):
        limiter.allows(str(number), 0.0)
    assert not limiter.allows("first", 0.0)
    limiter.allows("one more", 0.0)
    assert not limiter.allows("first", 0.0)
    assert limiter.allows("second", 0.0), "it was the longest silent, so it is forgotten and starts anew"


@given(st.lists(st.floats(0, 10), min_size=1, max_size=200), st.integers(1, 20), st.integers(1, 20))
def test_in_any_span_no_more_passes_than_a_burst_and_the_rate_of_the_span(
    gaps: list[float], rate: int, burst: int
) -> None:
    limiter, now, passed = RateLimiter(rate=rate, burst=burst), 0.0, []
    for gap in gaps:
        now += gap / 10
        if limiter.allows("p", now):
            passed.append(now)
    for first in range(len(passed)):
        for last in range(first, len(passed)):
            assert last - first + 1 <= burst + rate * (passed[last] - passed[first]) + 1e-6


class Dice:
    def __init__(self, raw: bytes) -> None:
        self._raw = raw

    def now_ms(self) -> int:
        return 1

    def random_bytes(self, count: int) -> bytes:
        assert count == len(self._raw)
        return self._raw


@pytest.mark.parametrize("bound", [1, 2, 6, 1000])
@given(raw=st.binary(min_size=8, max_size=8))
def test_a_random_choice_is_within_its_bound(raw: bytes, bound: int) -> None:
    assert 0 <= random_below(Dice(raw), bound) < bound
