"""The builders: what they make is accepted, and what a reader would refuse they refuse with the same code."""

from __future__ import annotations

from dataclasses import replace

import pytest
from authority_objects import AGENCY, AGENT, NOW, PROVIDER, STRANGER, Grant, chain, invoke, long_chain

from bnw.invoke.authority.build import NO_CAVEATS, attenuate, grant, revoke
from bnw.invoke.authority.explain import explain
from bnw.objects.authority import Delegation
from bnw.objects.signed import SignedObject, sign_object
from bnw.wire.errors import InvalidError
from bnw.wire.limits import (
    CANCELLING_LIFETIME_MAX,
    CANCELLING_LIFETIME_MIN,
    CLOCK_SKEW,
    DAY,
    DELEGATION_LIFETIME,
    HOUR,
)

PARENT = chain(Grant(PROVIDER, AGENCY, "delegate invoke").only(max_calls=10, max_input_bytes=1000))


def by_agency(parents: list[SignedObject] = PARENT, **changes: object) -> Delegation:
    given = {"issuer": AGENCY.identity, "audience": AGENT.identity, "now": NOW + HOUR, **changes}
    return attenuate(parents, **given)  # type: ignore[arg-type] # each test changes one thing


def test_a_grant_and_what_is_passed_on_from_it_hold_at_once() -> None:
    now = NOW + HOUR
    body = grant(audience=AGENCY.identity, rights=("invoke", "delegate"), now=now, expires=now + DAY)
    first = sign_object(body, PROVIDER)
    second = sign_object(by_agency([first]), AGENCY)
    assert explain(invoke(AGENT), [first, second], now=now).allowed


def test_it_also_holds_at_once_where_the_clock_is_slow() -> None:
    now = NOW + HOUR
    body = grant(audience=AGENT.identity, rights=("invoke",), now=now, expires=now + DAY)
    slow = now - CLOCK_SKEW
    assert explain(invoke(AGENT), [sign_object(body, PROVIDER)], now=slow).allowed
    assert explain(invoke(AGENT), [sign_object(body, PROVIDER)], now=slow - 1).code == "not-yet-valid"


def test_what_is_left_out_is_not_narrowed_except_delegating() -> None:
    child = by_agency()
    assert child.rights == ("invoke",)
    assert child.expires == PARENT[0].body.expires
    assert child.caveats == NO_CAVEATS
    assert child.parent == PARENT[0].id


def test_a_child_never_begins_before_its_parent_however_it_allows_for_clocks() -> None:
    assert by_agency(now=NOW + 1).not_before == NOW


def test_a_child_of_a_long_lived_parent_keeps_to_the_longest_lifetime() -> None:
    ahead = chain(Grant(PROVIDER, AGENCY, "delegate invoke", start=1, end=DELEGATION_LIFETIME))
    earlier = by_agency(ahead, now=NOW - CLOCK_SKEW, not_before=NOW + 1)
    assert sign_object(earlier, AGENCY).body.expires == NOW - CLOCK_SKEW + DELEGATION_LIFETIME


@pytest.mark.parametrize(
    ("code", "changes"),
    [
        ("exceeds-parent", {"caveats": replace(NO_CAVEATS, max_calls=11)}),
        ("exceeds-parent", {"caveats": replace(NO_CAVEATS, max_input_bytes=1001)}),
        ("exceeds-parent", {"rights": ("invoke", "provide")}),
        ("outlives-parent", {"expires": NOW + DAY + 1}),
        ("outlives-parent", {"not_before": NOW - 1}),
        ("wrong-issuer", {"issuer": STRANGER.identity}),
        ("delegation-expired", {"now": NOW + DAY}),
    ],
)
def test_what_a_reader_would_refuse_is_not_made(code: str, changes: dict[str, object]) -> None:
    with pytest.raises(InvalidError) as caught:
        by_agency(**changes)
    assert caught.value.code == code
    assert caught.value.place == PARENT[0].id.hex()
    assert caught.value.cure


def test_the_limit_of_a_grandparent_counts_as_well() -> None:
    links = chain(
        Grant(PROVIDER, STRANGER, "delegate invoke").only(max_calls=5), Grant(STRANGER, AGENCY, "delegate invoke")
    )
    with pytest.raises(InvalidError, match="6 calls, where 5 are left"):
        by_agency(links, caveats=replace(NO_CAVEATS, max_calls=6))


def test_a_delegation_that_may_not_be_passed_on_is_not() -> None:
    with pytest.raises(InvalidError) as caught:
        by_agency(chain(Grant(PROVIDER, AGENCY)))
    assert caught.value.code == "not-delegable"


def test_there_is_no_ninth_link() -> None:
    assert attenuate(long_chain(7), issuer=AGENT.identity, audience=STRANGER.identity, now=NOW)
    with pytest.raises(InvalidError) as caught:
        attenuate(long_chain(8), issuer=AGENT.identity, audience=STRANGER.identity, now=NOW)
    assert caught.value.code == "chain-too-long"


def test_a_grant_without_a_right_is_refused_when_it_is_signed() -> None:
    with pytest.raises(InvalidError):
        sign_object(grant(audience=AGENT.identity, rights=(), now=NOW, expires=NOW + DAY), PROVIDER)


def test_a_revocation_ends_what_it_names() -> None:
    link = Grant(PROVIDER, AGENT).sign()
    gone = sign_object(revoke(link, issuer=PROVIDER.identity, now=NOW + HOUR), PROVIDER)
    assert explain(invoke(AGENT), [link], revocations=[gone], now=NOW + HOUR).code == "delegation-revoked"
    assert gone.body.expires == NOW + HOUR + CANCELLING_LIFETIME_MIN


def test_a_revocation_outlives_a_delegation_from_a_clock_that_was_ahead() -> None:
    link = Grant(PROVIDER, AGENT, end=DELEGATION_LIFETIME).sign()
    early = NOW - 30 * DAY
    gone = sign_object(revoke(link, issuer=PROVIDER.identity, now=early), PROVIDER)
    assert gone.body.expires > link.body.expires
    absurd = sign_object(revoke(link, issuer=PROVIDER.identity, now=NOW - 400 * DAY), PROVIDER)
    assert absurd.body.expires == NOW - 400 * DAY + CANCELLING_LIFETIME_MAX


def test_only_the_issuer_can_revoke() -> None:
    with pytest.raises(InvalidError) as caught:
        revoke(Grant(PROVIDER, AGENT).sign(), issuer=AGENT.identity, now=NOW)
    assert caught.value.code == "wrong-issuer"
