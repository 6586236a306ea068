"""Counting: never more calls in any hour than granted, and bounded however many those are."""

from __future__ import annotations

import hypothesis.strategies as st
from authority_objects import NOW
from hypothesis import given, settings

from bnw.invoke.authority.usage import MAX_MINUTES, Usage
from bnw.wire.limits import DAY, HOUR, MINUTE, SECOND


def used_at(*times: int) -> Usage:
    usage = Usage()
    for time in times:
        usage = usage.with_call(time, by_the_hour=True)
    return usage


def test_calls_are_counted_for_ever_and_minutes_for_an_hour() -> None:
    usage = used_at(NOW, NOW, NOW + DAY)
    assert usage.calls == 3
    assert usage.calls_in_last_hour(NOW + DAY) == 1
    assert len(usage.minutes) == 1


def test_minutes_are_only_kept_where_a_rate_is_granted() -> None:
    assert Usage().with_call(NOW, by_the_hour=False) == Usage(1, ())


def test_a_call_counts_for_an_hour_and_at_most_a_minute_more() -> None:
    usage = used_at(NOW)
    assert usage.calls_in_last_hour(NOW + HOUR) == 1
    assert usage.calls_in_last_hour(NOW + HOUR + MINUTE) == 0


@settings(max_examples=300)
@given(st.lists(st.integers(0, 20 * MINUTE), max_size=60), st.integers(1, 5))
def test_no_hour_ever_sees_more_calls_than_granted(gaps: list[int], limit: int) -> None:
    usage, now, made = Usage(), NOW, []
    for gap in gaps:
        now += gap
        if usage.calls_in_last_hour(now) < limit:
            usage = usage.with_call(now, by_the_hour=True)
            made.append(now)
    for start in made:
        assert sum(start <= time <= start + HOUR for time in made) <= limit


@settings(max_examples=300)
@given(st.lists(st.integers(0, 5 * MINUTE), min_size=1, max_size=30), st.integers(1, 5))
def test_the_stated_time_is_when_a_call_is_possible_again_and_no_sooner(gaps: list[int], limit: int) -> None:
    now, times = NOW, []
    for gap in gaps:
        now += gap
        times.append(now)
    usage = used_at(*times)
    at = usage.next_call_at(now, limit)
    assert usage.calls_in_last_hour(at) < limit
    assert at == now or usage.calls_in_last_hour(at - 1) >= limit


@given(st.lists(st.integers(-3 * HOUR, 3 * HOUR), max_size=200))
def test_the_memory_of_a_delegation_is_bounded_whatever_the_clock_does(steps: list[int]) -> None:
    usage, now = Usage(), NOW
    for step in steps:
        now += step
        usage = usage.with_call(now, by_the_hour=True)
        assert len(usage.minutes) <= MAX_MINUTES
        assert list(usage.minutes) == sorted(dict(usage.minutes).items())
    assert usage.calls == len(steps)


def test_a_call_a_second_for_a_day_takes_no_more_room() -> None:
    usage = Usage()
    for second in range(0, DAY // SECOND, 20):
        usage = usage.with_call(NOW + second * SECOND, by_the_hour=True)
    assert len(usage.minutes) == 61


def test_setting_the_clock_back_a_little_grants_no_more_calls() -> None:
    assert used_at(NOW + HOUR, NOW + HOUR).calls_in_last_hour(NOW) == 2


def test_a_clock_that_was_a_year_ahead_does_not_block_calls_for_a_year() -> None:
    assert used_at(NOW + 365 * DAY).calls_in_last_hour(NOW) == 0
