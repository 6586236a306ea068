"""Attacks on delegation, one test each, with the name of the attack."""

from __future__ import annotations

import pytest
from authority_objects import (
    AGENCY,
    AGENT,
    CROWD,
    NOW,
    PROVIDER,
    STRANGER,
    Grant,
    chain,
    forged,
    ids,
    invoke,
    long_chain,
    revoked,
)

from bnw.invoke.authority.chains import ChainSource
from bnw.invoke.authority.explain import explain
from bnw.objects.authority import Delegation
from bnw.objects.calls import Invocation
from bnw.objects.signed import SignedObject, sign_object
from bnw.wire.content_id import ContentId, content_id
from bnw.wire.errors import InvalidError
from bnw.wire.limits import HOUR

LATER = NOW + HOUR


def invocation(delegations: tuple[ContentId, ...]) -> SignedObject:
    body = Invocation(
        created=NOW,
        expires=LATER,
        capability=content_id(b"capability"),
        deadline=LATER,
        delegations=delegations,
        inactivity=None,
        input=content_id(b"input"),
        provider=PROVIDER.identity,
    )
    return sign_object(body, AGENT)


def loop_of(length: int) -> list[SignedObject]:
    """Delegations that hang on each other in a ring, which takes a broken hash."""
    names = [content_id(str(number).encode()) for number in range(length)]
    rights = "invoke delegate"
    return [forged(Grant(AGENCY, AGENCY, rights).sign(), names[number], names[number - 1]) for number in range(length)]


def test_a_chain_with_a_loop_is_refused_in_the_invocation_already() -> None:
    link = chain(Grant(PROVIDER, AGENT))[0]
    with pytest.raises(InvalidError, match="there twice"):
        invocation((link.id, link.id))


@pytest.mark.parametrize("length", [1, 2, 7])
def test_a_chain_with_a_loop_ends_and_is_refused(length: int) -> None:
    ring = loop_of(length)
    walked = ChainSource(ring).chain_to(ring[0].id)
    assert len(walked) == length + 1
    assert explain(invoke(AGENCY), walked, now=LATER).code == "chain-loop"


def test_a_loop_that_is_longer_than_a_chain_may_be_ends_too() -> None:
    ring = loop_of(1000)
    walked = ChainSource(ring).chain_to(ring[0].id)
    assert len(walked) == 9
    assert explain(invoke(AGENCY), walked, now=LATER).code == "chain-too-long"
    assert ChainSource(ring).chains_for(invoke(AGENCY)) == []


def test_a_chain_of_nine_links_is_refused_in_the_invocation_already() -> None:
    assert invocation(ids(long_chain(8)))
    with pytest.raises(InvalidError, match="9 items"):
        invocation(ids(long_chain(9)))


def test_a_chain_of_nine_links_is_not_found_and_not_followed() -> None:
    nine = long_chain(9)
    assert ChainSource(nine).chains_for(invoke(AGENT)) == []
    assert explain(invoke(AGENT), ChainSource(nine).chain_to(nine[-1].id), now=LATER).code == "chain-too-long"


def test_hiding_the_root_does_not_shorten_a_chain() -> None:
    nine = long_chain(9)
    verdict = explain(invoke(AGENT), nine[1:], now=LATER)
    assert verdict.code == "chain-broken"


def test_a_wider_child_is_refused_even_where_this_call_would_fit() -> None:
    """The tighter limit would hold anyway, but whoever signs a wider child is mistaken or lies; nothing hangs on it."""
    wide = chain(
        Grant(PROVIDER, AGENCY, "invoke delegate").only(max_input_bytes=1000),
        Grant(AGENCY, AGENT).only(max_input_bytes=2000),
    )
    verdict = explain(invoke(AGENT, size=1), wide, now=LATER)
    assert (verdict.code, verdict.allowed) == ("exceeds-parent", False)
    assert "2,000 bytes of input, where 1,000 are left" in verdict.cause


def test_a_wider_link_in_the_middle_is_not_made_good_by_a_narrow_last_one() -> None:
    links = chain(
        Grant(PROVIDER, AGENCY, "invoke delegate").only(max_calls=5),
        Grant(AGENCY, STRANGER, "invoke delegate").only(max_calls=50),
        Grant(STRANGER, AGENT).only(max_calls=1),
    )
    verdict = explain(invoke(AGENT), links, now=LATER)
    assert (verdict.code, [link.number for link in verdict.links if link.problems]) == ("exceeds-parent", [2])


def test_a_right_that_was_given_up_does_not_come_back_further_down() -> None:
    links = chain(
        Grant(PROVIDER, AGENCY, "delegate invoke provide"),
        Grant(AGENCY, STRANGER, "delegate provide"),
        Grant(STRANGER, AGENT, "invoke"),
    )
    verdict = explain(invoke(AGENT), links, now=LATER)
    assert {problem.code for problem in verdict.links[2].problems} == {"exceeds-parent"}


def test_the_key_of_a_middle_link_cannot_be_replaced_by_ones_own() -> None:
    """The thief's link names the parent, but the parent names somebody else."""
    parent = Grant(PROVIDER, AGENCY, "invoke delegate").sign()
    theft = Grant(STRANGER, STRANGER, "invoke delegate").sign(parent.id)
    last = Grant(STRANGER, AGENT).sign(theft.id)
    verdict = explain(invoke(AGENT), [parent, theft, last], now=LATER)
    assert (verdict.code, [link.number for link in verdict.links if link.problems]) == ("wrong-issuer", [2])
    assert ChainSource([parent, theft, last]).chains_for(invoke(AGENT)) == []


def test_a_chain_for_another_audience_is_no_bearer_token() -> None:
    """Chains are public: everybody can read one, and nobody but the one it names can use it."""
    links = chain(Grant(PROVIDER, AGENCY, "invoke delegate"), Grant(AGENCY, AGENT))
    for somebody in (AGENCY, STRANGER, *CROWD):
        assert explain(invoke(somebody), links, now=LATER).code == "wrong-audience"


def test_valid_when_sent_and_revoked_when_run() -> None:
    links = chain(Grant(PROVIDER, AGENCY, "invoke delegate"), Grant(AGENCY, AGENT))
    sent = explain(invoke(AGENT), links, now=LATER)
    run = explain(invoke(AGENT), links, revocations=[revoked(links[0], PROVIDER, at=HOUR)], now=LATER + 1)
    assert (sent.code, run.code) == ("delegated", "delegation-revoked")


def test_valid_when_sent_and_expired_when_run() -> None:
    links = chain(Grant(PROVIDER, AGENT, end=HOUR))
    assert explain(invoke(AGENT), links, now=LATER - 1).allowed
    assert explain(invoke(AGENT), links, now=LATER).code == "delegation-expired"


def test_a_revocation_by_a_stranger_cannot_stop_anybody() -> None:
    links = chain(Grant(PROVIDER, AGENT))
    noise = [revoked(links[0], somebody) for somebody in (AGENT, AGENCY, STRANGER, *CROWD)]
    assert explain(invoke(AGENT), links, revocations=noise, now=LATER).allowed


def test_spam_that_names_the_agent_leads_nowhere() -> None:
    """Anybody may sign delegations for anybody; the search offers only what leads to a root."""
    good = chain(Grant(PROVIDER, AGENT))
    spam = [Grant(somebody, AGENT, end=end).sign() for somebody in CROWD for end in range(1, 20)]
    deep = [Grant(STRANGER, AGENT, end=end).sign(good[0].id) for end in range(1, 20)]
    assert ChainSource([*spam, *deep, *good]).chains_for(invoke(AGENT)) == [tuple(good)]


def test_times_beyond_every_calendar_can_be_shown() -> None:
    """A verdict on hostile objects is text on somebody's terminal, not an exception."""
    far = 2**53 - 2 - NOW
    link = Grant(PROVIDER, AGENT, start=far, end=far + 1)
    odd = SignedObject(content_id(b"odd"), PROVIDER.identity, _unsigned(link), b"")
    verdict = explain(invoke(AGENT), [odd], now=LATER)
    assert verdict.code == "not-yet-valid"
    assert "9007199254740990 ms" in "\n".join(verdict.lines())


def _unsigned(grant: Grant) -> Delegation:
    """The body as no signer would make it."""
    return Delegation(
        created=NOW + grant.start,
        expires=NOW + grant.end,
        audience=grant.to.identity,
        caveats=grant.caveats,
        not_before=NOW + grant.start,
        parent=None,
        rights=("invoke",),
    )
