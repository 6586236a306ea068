"""Inbox keys rotate weekly; the old private half is kept for two weeks more and then dropped (design section 7)."""

from __future__ import annotations

from datetime import timedelta

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from bnw.identity.inbox_keys import (
    INBOX_KEY_GRACE,
    INBOX_KEY_PERIOD,
    RENEW_BEFORE,
    InboxKey,
    needs_successor,
    new_inbox_key,
    without_expired,
)
from bnw.wire.errors import InvalidError
from bnw.wire.limits import CLOCK_SKEW, DAY, HOUR

MILLISECOND = timedelta(milliseconds=1)
NOW = 1_800_000_000_000


def test_the_periods_are_those_of_the_design() -> None:
    period, grace, renewal = INBOX_KEY_PERIOD, INBOX_KEY_GRACE, RENEW_BEFORE
    assert period * MILLISECOND == timedelta(weeks=1)
    assert grace * MILLISECOND == timedelta(weeks=2)
    assert renewal * MILLISECOND == timedelta(days=1)


@given(st.binary(min_size=32, max_size=32))
def test_the_public_half_is_that_of_another_library(private: bytes) -> None:
    expected = X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()
    assert InboxKey(private, 1, 2).public == expected


def test_the_public_half_is_that_of_rfc_7748() -> None:
    # Section 6.1, Alice.
    private = bytes.fromhex("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a")
    public = bytes.fromhex("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a")
    assert InboxKey(private, 1, 2).public == public


def test_a_new_key_is_good_for_peers_whose_clock_is_slow() -> None:
    key = new_inbox_key(bytes(32), NOW)
    assert (NOW - key.not_before) * MILLISECOND == timedelta(minutes=5)
    assert key.not_before == NOW - CLOCK_SKEW
    assert (key.not_after - NOW) * MILLISECOND == timedelta(weeks=1)


def test_a_successor_is_due_a_day_before_the_end() -> None:
    key = new_inbox_key(bytes(32), NOW)
    assert not needs_successor([key], NOW)
    assert not needs_successor([key], NOW + 6 * DAY - 1)
    assert needs_successor([key], NOW + 6 * DAY)
    assert needs_successor([], NOW)


def test_a_successor_in_time_ends_the_need() -> None:
    keys = [new_inbox_key(bytes(32), NOW), new_inbox_key(bytes(32), NOW + 6 * DAY)]
    assert not needs_successor(keys, NOW + 6 * DAY)


def test_a_key_from_a_clock_that_ran_ahead_is_no_key_for_now() -> None:
    assert needs_successor([new_inbox_key(bytes(32), NOW + 365 * DAY)], NOW)
    assert needs_successor([new_inbox_key(bytes(32), NOW + HOUR)], NOW)


def test_a_private_half_is_kept_until_its_grace_is_over_and_not_longer() -> None:
    key = new_inbox_key(bytes(32), NOW)
    end = NOW + 7 * DAY + 14 * DAY
    assert without_expired([key], end) == (key,)
    assert without_expired([key], end + 1) == ()


@pytest.mark.parametrize("size", [0, 31, 33])
def test_a_key_of_another_size_is_refused(size: int) -> None:
    with pytest.raises(InvalidError) as caught:
        InboxKey(bytes(size), 1, 2)
    assert caught.value.code == "key-size"


@pytest.mark.parametrize("end", [0, 1])
def test_a_key_that_is_valid_at_no_time_is_refused(end: int) -> None:
    with pytest.raises(InvalidError) as caught:
        InboxKey(bytes(32), 1, end)
    assert caught.value.code == "key-validity"


def test_a_key_does_not_show_its_secret() -> None:
    assert "private" not in repr(InboxKey(b"secret of 32 bytes in this key!!", 1, 2))
