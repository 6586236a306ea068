"""Rules beyond an object's own bytes (design sections 6, 9, 10): time, scope, slot, sequence, contradiction."""

from __future__ import annotations

import dataclasses
import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from bodies import bodies, raw32, sequences
from golden_vectors import Vector, golden, refused
from hypothesis import given, settings
from hypothesis import strategies as st

from bnw.identity.keys import IdentityId, SigningKey
from bnw.objects.admission import Blame, blame_for, check_catalog_object, check_inbox_object
from bnw.objects.body import Body
from bnw.objects.calls import Invocation
from bnw.objects.catalog import ProviderOffer, Withdrawal
from bnw.objects.mail import PayloadManifest
from bnw.objects.rules import (
    CATALOG_KINDS,
    Precedence,
    capability_slot,
    check_time,
    identity_slot,
    is_catalog_object,
    is_expired,
    next_sequence,
    offer_slot,
    precedence,
    recipients_of,
    sequence_of,
    slot_of,
)
from bnw.objects.signed import KINDS, SignedObject, sign_object, verify_object
from bnw.wire.content_id import ContentId, content_id
from bnw.wire.errors import InvalidError
from bnw.wire.limits import CANCELLING_LIFETIME_MIN, CLOCK_SKEW, DAY, HOUR, MAX_SIGNED_OBJECT

CHECKS = {"catalog": check_catalog_object, "inbox": check_inbox_object}
KEY, OTHER = SigningKey(bytes(32)), SigningKey(bytes([1]) * 32)
IDENTITY_KINDS = {"identity-record", "capability-manifest", "withdrawal", "provider-offer"}


def milliseconds(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


NOON = datetime(2027, 3, 1, 12, tzinfo=UTC)
NOW = milliseconds(NOON)


def offer(**change: Any) -> ProviderOffer:
    body = ProviderOffer(
        created=NOW, expires=NOW + HOUR, available=True, capability=content_id(b"c"), endpoints=(), sequence=1
    )
    return dataclasses.replace(body, **change)


# Admission


@golden("rules.json", "admitted")
def test_an_object_is_admitted(vector: Vector) -> None:
    data = vector.bytes_of("hex")
    admitted = CHECKS[vector["scope"]](data, vector["now"])
    assert admitted.id == content_id(data)


@golden("rules.json", "turned_away")
def test_an_object_is_turned_away_and_blame_is_given(vector: Vector) -> None:
    try:
        CHECKS[vector["scope"]](vector.bytes_of("hex"), vector["now"])
    except InvalidError as error:
        assert blame_for(error) is Blame(vector["blame"])
    with refused(vector):
        CHECKS[vector["scope"]](vector.bytes_of("hex"), vector["now"])


@pytest.mark.parametrize("code", ["expired", "from-the-future"])
def test_lateness_and_clocks_are_nobodys_fault(code: str) -> None:
    assert blame_for(InvalidError(code, "")) is Blame.NOBODY


@pytest.mark.parametrize(
    "code", ["signature", "cbor", "too-large", "lifetime", "unknown-field", "wrong-scope", "field"]
)
def test_what_the_bytes_say_is_the_fault_of_who_sent_them(code: str) -> None:
    assert blame_for(InvalidError(code, "")) is Blame.SENDER


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS.keys())
@given(data=st.binary(max_size=80).map(lambda raw: b"\xd2\x84" + raw))
@settings(max_examples=40)
def test_bytes_of_no_object_are_the_fault_of_who_sent_them(check: Any, data: bytes) -> None:
    with pytest.raises(InvalidError) as caught:
        check(data, NOW)
    assert blame_for(caught.value) is Blame.SENDER


def test_checks_go_from_cheap_to_dear() -> None:
    # An object that breaks every rule, cured of one after the other: the cheapest rule it breaks is the one named.
    signed = sign_object(offer(), KEY).data
    broken = signed[:-1] + bytes([signed[-1] ^ 1])
    steps = [
        (bytes(MAX_SIGNED_OBJECT + 1), NOW + DAY, "too-large"),
        (broken[1:], NOW + DAY, "envelope"),
        (broken.replace(b"provider-offer", b"provider-wares"), NOW + DAY, "unknown-kind"),
        (broken.replace(b"available\xf5", b"available\x01"), NOW + DAY, "field"),
        (broken, NOW + DAY, "expired"),
    ]
    for data, now, code in steps:
        with pytest.raises(InvalidError) as caught:
            check_catalog_object(data, now).verify()
        assert caught.value.code == code
    with pytest.raises(InvalidError) as caught:
        check_catalog_object(broken, NOW).verify()
    assert caught.value.code == "signature"
    assert check_catalog_object(signed, NOW).verify() == verify_object(signed)


# Time


def test_a_clock_may_be_five_minutes_slow_and_no_more() -> None:
    assert timedelta(milliseconds=CLOCK_SKEW) == timedelta(minutes=5)
    check_time(offer(), milliseconds(NOON - timedelta(minutes=5)))
    with pytest.raises(InvalidError, match="300000 ms") as caught:
        check_time(offer(), milliseconds(NOON - timedelta(minutes=5, milliseconds=1)))
    assert caught.value.code == "from-the-future"


def test_expiry_is_exact() -> None:
    body = offer(expires=milliseconds(NOON + timedelta(hours=24)))
    last = milliseconds(NOON + timedelta(hours=23, minutes=59, seconds=59, milliseconds=999))
    assert not is_expired(body, last)
    check_time(body, last)
    assert is_expired(body, last + 1)
    with pytest.raises(InvalidError, match="0 ms ago") as caught:
        check_time(body, last + 1)
    assert caught.value.code == "expired"


@given(st.integers(1, 2**45), st.integers(1, DAY), st.integers(1, 2**46))
def test_an_object_is_taken_in_from_a_skew_before_its_creation_to_its_expiry(created: int, life: int, now: int) -> None:
    body = offer(created=created, expires=created + life)
    try:
        check_time(body, now)
        taken = True
    except InvalidError:
        taken = False
    assert taken == (created - 5 * 60 * 1000 <= now < created + life)


def test_what_is_withdrawn_cannot_come_back_between_two_clocks_at_the_ends_of_the_skew() -> None:
    # The manifest was made by a clock that runs ahead by all it may, the withdrawal by one as far behind.
    manifest_ends = NOW + CLOCK_SKEW + timedelta(days=366) // timedelta(milliseconds=1)
    made = NOW - CLOCK_SKEW
    withdrawal = Withdrawal(created=made, expires=made + CANCELLING_LIFETIME_MIN, name="x", sequence=1)
    assert not is_expired(withdrawal, manifest_ends - 1)


# Scopes


def test_the_catalog_has_the_six_public_kinds() -> None:
    public = {"identity-record", "capability-manifest", "withdrawal", "provider-offer", "delegation", "revocation"}
    assert {cls.KIND for cls in CATALOG_KINDS} == public
    assert len(KINDS) == 12


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=10)
@given(data=st.data())
def test_an_object_is_for_the_catalog_or_for_somebodys_inbox_and_for_no_other_scope(
    kind: str, data: st.DataObject
) -> None:
    body = data.draw(bodies(kind))
    assert is_catalog_object(body) == (recipients_of(body) == ())
    signed = sign_object(body, KEY).data
    right, wrong = ("catalog", "inbox") if is_catalog_object(body) else ("inbox", "catalog")
    assert CHECKS[right](signed, body.created).verify().body == body
    with pytest.raises(InvalidError) as caught:
        CHECKS[wrong](signed, body.created)
    assert caught.value.code == "wrong-scope"


@given(bodies("payload-manifest"), bodies("invocation"))
def test_mail_goes_to_all_recipients_and_calls_to_the_provider(payload: PayloadManifest, call: Invocation) -> None:
    assert recipients_of(payload) == payload.recipients
    assert recipients_of(call) == (call.provider,)


# Slots and sequences


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=10)
@given(data=st.data())
def test_only_replaceable_kinds_have_a_slot_and_a_sequence(kind: str, data: st.DataObject) -> None:
    obj = sign_object(data.draw(bodies(kind)), KEY)
    assert (slot_of(obj) is not None) == (kind in IDENTITY_KINDS)
    assert (sequence_of(obj.body) > 0) == (kind in IDENTITY_KINDS)


def test_a_manifest_and_its_withdrawal_share_a_slot_and_nothing_else_does() -> None:
    a, b = IdentityId(bytes(32)), IdentityId(bytes([1]) * 32)
    c, d = ContentId(bytes(32)), ContentId(bytes([1]) * 32)
    slots = [
        identity_slot(a),
        identity_slot(b),
        *(capability_slot(who, name) for who in (a, b) for name in ("x", "y", "xy")),
        *(offer_slot(who, what) for who in (a, b) for what in (c, d)),
    ]
    assert len(set(slots)) == len(slots)


@given(raw32, raw32, st.text("abc/", max_size=5), st.text("abc/", max_size=5), raw32, raw32)
def test_different_things_have_different_slots(a: bytes, b: bytes, x: str, y: str, c: bytes, d: bytes) -> None:
    one, other = IdentityId(a), IdentityId(b)
    assert (capability_slot(one, x) == capability_slot(other, y)) == ((a, x) == (b, y))
    assert (offer_slot(one, ContentId(c)) == offer_slot(other, ContentId(d))) == ((a, c) == (b, d))
    assert capability_slot(one, x) != offer_slot(other, ContentId(c))


@golden("rules.json", "sequences")
def test_a_signer_counts_on_or_takes_the_time(vector: Vector) -> None:
    assert next_sequence(vector["previous"], vector["now"]) == vector["next"]


@given(st.none() | sequences, st.integers(1, 2**50))
def test_a_sequence_is_higher_than_the_last_and_no_less_than_the_time(previous: int | None, now: int) -> None:
    found = next_sequence(previous, now)
    assert found == max((previous or 0) + 1, now)


def test_a_restored_backup_does_not_repeat_a_sequence() -> None:
    issued = [next_sequence(None, NOW)]
    for second in range(1, 100):
        issued.append(next_sequence(issued[-1], NOW + second * 1000))
    restored = issued[3]
    assert next_sequence(restored, NOW + 100_000) not in issued


# Contradiction


@golden("rules.json", "precedence")
def test_of_two_in_a_slot_one_wins(vector: Vector) -> None:
    held, new = verify_object(vector.bytes_of("held")), verify_object(vector.bytes_of("new"))
    assert slot_of(held) == slot_of(new)
    assert precedence(place(new), place(held)).value == vector["outcome"]


def place(obj: SignedObject) -> tuple[int, ContentId]:
    return sequence_of(obj.body), obj.id


ranks = st.tuples(st.integers(1, 3), raw32.map(ContentId))


@given(ranks, ranks)
def test_what_wins_when_it_comes_second_loses_nothing_by_coming_first(
    one: tuple[int, ContentId], other: tuple[int, ContentId]
) -> None:
    if one[1] == other[1]:
        return
    mirror = {
        Precedence.REPLACES: Precedence.SUPERSEDED,
        Precedence.SUPERSEDED: Precedence.REPLACES,
        Precedence.EQUIVOCATION_WINS: Precedence.EQUIVOCATION_LOSES,
        Precedence.EQUIVOCATION_LOSES: Precedence.EQUIVOCATION_WINS,
    }
    assert precedence(other, one) is mirror[precedence(one, other)]
    contradiction = precedence(one, other) in {Precedence.EQUIVOCATION_WINS, Precedence.EQUIVOCATION_LOSES}
    assert contradiction == (one[0] == other[0])


@given(st.lists(ranks, min_size=1, max_size=5, unique_by=lambda rank: rank[1]))
def test_in_whatever_order_objects_come_all_nodes_settle_on_the_same(arrivals: list[tuple[int, ContentId]]) -> None:
    highest = max(sequence for sequence, _ in arrivals)
    expected = (highest, min(id for sequence, id in arrivals if sequence == highest))
    for order in itertools.permutations(arrivals):
        held = order[0]
        for new in order[1:]:
            if precedence(new, held) in {Precedence.REPLACES, Precedence.EQUIVOCATION_WINS}:
                held = new
        assert held == expected


def test_a_lower_id_wins_among_real_objects() -> None:
    versions = [sign_object(offer(available=available), KEY) for available in (True, False)]
    low, high = sorted(versions, key=lambda obj: obj.id)
    assert precedence(place(low), place(high)) is Precedence.EQUIVOCATION_WINS
    assert precedence(place(high), place(low)) is Precedence.EQUIVOCATION_LOSES


def test_two_signers_never_contradict_each_other() -> None:
    mine, theirs = sign_object(offer(), KEY), sign_object(offer(available=False), OTHER)
    assert slot_of(mine) != slot_of(theirs)


def test_every_kind_may_expire() -> None:
    for cls in KINDS.values():
        assert issubclass(cls, Body)
        assert 1 <= cls.MIN_LIFETIME <= cls.MAX_LIFETIME
