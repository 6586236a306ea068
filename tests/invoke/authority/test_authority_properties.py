"""What holds for every chain, however its links were made: attenuation, revocation, order, and the builder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import hypothesis.strategies as st
from authority_objects import (
    AGENCY,
    AGENT,
    DELEGATED,
    MANIFEST,
    NOW,
    OTHER_MANIFEST,
    PROVIDER,
    PUBLISHER,
    STRANGER,
    Grant,
    chain,
    invoke,
    revoked,
)
from hypothesis import assume, event, given, settings

from bnw.invoke.authority.bounds import Bounds
from bnw.invoke.authority.build import NO_CAVEATS, attenuate
from bnw.invoke.authority.chains import ChainSource
from bnw.invoke.authority.explain import explain
from bnw.invoke.authority.question import Question
from bnw.invoke.authority.usage import Usage
from bnw.objects.authority import Caveats, Delegation
from bnw.objects.signed import SignedObject, sign_object
from bnw.wire.content_id import ContentId
from bnw.wire.errors import InvalidError
from bnw.wire.limits import MINUTE

PEOPLE = (PROVIDER, PUBLISHER, AGENCY, AGENT, STRANGER)
TICK = 10 * MINUTE
"""Times are few, so that beginnings and ends often meet."""

people = st.sampled_from(PEOPLE)
small = st.none() | st.integers(1, 3)
all_rights = st.sets(st.sampled_from(("delegate", "invoke", "provide")), min_size=1)
caveats = st.builds(
    Caveats,
    capability=st.sampled_from((None, None, MANIFEST.id, OTHER_MANIFEST.id)),
    max_calls=small,
    max_calls_per_hour=small,
    max_input_bytes=small,
    publisher=st.sampled_from((None, None, PUBLISHER.identity, STRANGER.identity)),
)


FAULTS = ("rights", "signer", "parent", "start", "end", "narrow")
SOUND = len(FAULTS)
"""As many links are sound as have each of the faults together, so that both verdicts are common."""


@st.composite
def any_chain(draw: st.DrawFn) -> list[SignedObject]:
    """Links that may be off in any way, and often are not."""
    links: list[SignedObject] = []
    holder = draw(st.sampled_from((PROVIDER, PUBLISHER, PROVIDER, STRANGER)))
    for _ in range(draw(st.integers(1, 4))):
        audience = draw(st.sampled_from((AGENCY, AGENT, STRANGER)))
        fault = draw(st.sampled_from((*[""] * SOUND, *FAULTS)))
        grant = Grant(
            by=draw(people) if fault == "signer" else holder,
            to=audience,
            rights=" ".join(draw(all_rights)) if fault == "rights" else "delegate invoke",
            start=draw(st.integers(-1, 2)) * TICK if fault == "start" else 0,
            end=draw(st.integers(3, 6)) * TICK if fault == "end" else 4 * TICK,
            caveats=draw(caveats) if fault == "narrow" else NO_CAVEATS,
        )
        links.append(grant.sign(links[-1].id if links and fault != "parent" else None))
        holder = audience
    return links


@st.composite
def good_chain(draw: st.DrawFn) -> list[SignedObject]:
    """One or two links that hold, and may be passed on."""
    first = Grant(PROVIDER, AGENCY, draw(st.sampled_from(("delegate invoke", "delegate invoke provide")))).only(
        capability=draw(st.sampled_from((None, MANIFEST.id))),
        max_calls=draw(small),
        max_calls_per_hour=draw(small),
        max_input_bytes=draw(st.sampled_from((None, 2, 3))),
        publisher=draw(st.sampled_from((None, PUBLISHER.identity))),
    )
    second = Grant(AGENCY, STRANGER, "delegate invoke")
    return chain(replace(first, end=4 * TICK), replace(second, end=4 * TICK))[: draw(st.integers(1, 2))]


@st.composite
def circumstances(draw: st.DrawFn, links: Sequence[SignedObject]) -> tuple[int, dict[ContentId, Usage]]:
    """A time, and some use of each link around it."""
    now = NOW + draw(st.sampled_from((1, 2, 3, 0, 4))) * TICK
    usage = {}
    for link in links:
        count = draw(st.sampled_from((0, 0, 1, 2, 3)))
        usage[link.id] = Usage(count, ((now // MINUTE, count),) if count else ())
    return now, usage


def holder_of(link: SignedObject) -> Question:
    """The call of whoever the link is for."""
    assert isinstance(link.body, Delegation)
    return replace(invoke(AGENT, DELEGATED, size=2), actor=link.body.audience)


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_a_child_never_permits_what_its_parent_forbids(data: st.DataObject) -> None:
    links = data.draw(any_chain())
    assume(len(links) > 1)
    now, usage = data.draw(circumstances(links))
    gone = [revoked(link, PROVIDER) for link in links if data.draw(st.integers(0, 5)) == 0]
    verdict = explain(holder_of(links[-1]), links, revocations=gone, now=now, usage=usage)
    event(verdict.code)
    if verdict.code == "delegated":
        parent = explain(holder_of(links[-2]), links[:-1], revocations=gone, now=now, usage=usage)
        assert parent.allowed


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_what_a_chain_permits_every_link_of_it_grants(data: st.DataObject) -> None:
    """Judged against the signed fields themselves, without `Bounds`."""
    links = data.draw(any_chain())
    now, usage = data.draw(circumstances(links))
    verdict = explain(holder_of(links[-1]), links, now=now, usage=usage)
    if verdict.code != "delegated":
        return
    for number, link in enumerate(links):
        body = link.body
        assert isinstance(body, Delegation)
        limits = body.caveats
        assert "invoke" in body.rights
        assert number == len(links) - 1 or "delegate" in body.rights
        assert body.not_before <= now < body.expires
        assert limits.capability in {None, MANIFEST.id}
        assert limits.publisher in {None, PUBLISHER.identity}
        assert limits.max_input_bytes is None or limits.max_input_bytes >= 2
        assert limits.max_calls is None or limits.max_calls > usage[link.id].calls
        assert limits.max_calls_per_hour is None or limits.max_calls_per_hour > usage[link.id].calls
        for upper in links[:number]:
            assert isinstance(upper.body, Delegation)
            assert set(body.rights) <= set(upper.body.rights)
            assert body.expires <= upper.body.expires
            assert body.not_before >= upper.body.not_before
    assert links[0].signer in {PROVIDER.identity, PUBLISHER.identity}


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_adding_revocations_never_permits_anything(data: st.DataObject) -> None:
    links = data.draw(any_chain())
    now, usage = data.draw(circumstances(links))
    some = st.lists(st.builds(revoked, st.sampled_from(links), people), max_size=4)
    few, more = data.draw(some), data.draw(some)
    before = explain(holder_of(links[-1]), links, revocations=few, now=now, usage=usage)
    after = explain(holder_of(links[-1]), links, revocations=[*few, *more], now=now, usage=usage)
    assert before.allowed or not after.allowed


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_more_use_and_larger_inputs_never_permit_anything(data: st.DataObject) -> None:
    links = data.draw(any_chain())
    now, usage = data.draw(circumstances(links))
    more = {
        id: used if data.draw(st.booleans()) else used.with_call(now, by_the_hour=True) for id, used in usage.items()
    }
    question = holder_of(links[-1])
    before = explain(question, links, now=now, usage=usage)
    after = explain(replace(question, input_bytes=3), links, now=now, usage=more)
    assert before.allowed or not after.allowed


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_the_order_of_the_known_delegations_makes_no_difference(data: st.DataObject) -> None:
    links = data.draw(any_chain())
    others = data.draw(any_chain())
    known = list({link.id: link for link in [*links, *others]}.values())
    shuffled = data.draw(st.permutations(known))
    for link in known:
        assert ChainSource(known).chain_to(link.id) == ChainSource(shuffled).chain_to(link.id)
        question = holder_of(link)
        assert ChainSource(known).chains_for(question) == ChainSource(shuffled).chains_for(question)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_search_finds_a_chain_exactly_where_one_leads_to_a_root(data: st.DataObject) -> None:
    """Every known delegation is tried by itself; the search must offer those that hold."""
    known = [*data.draw(any_chain()), *data.draw(any_chain())]
    now = NOW + TICK
    source = ChainSource(known)
    for link in known:
        question = holder_of(link)
        if explain(question, source.chain_to(link.id), now=now).code == "delegated":
            offered = source.chains_for(question)
            assert any(explain(question, offer, now=now).allowed for offer in offered)
            assert link.id in {offer[-1].id for offer in offered}


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_what_the_builder_makes_a_reader_accepts_and_what_it_refuses_a_reader_refuses(data: st.DataObject) -> None:
    now = NOW + TICK
    parents = data.draw(good_chain())
    parent = parents[-1].body
    assert isinstance(parent, Delegation)
    assert explain(holder_of(parents[-1]), parents, now=now).code == "delegated"
    issuer = next(key for key in PEOPLE if key.identity == parent.audience)
    audience = data.draw(st.sampled_from((AGENCY, AGENT, STRANGER)))
    limits = data.draw(caveats)
    rights = data.draw(all_rights)
    ends, begins = NOW + data.draw(st.integers(2, 6)) * TICK, NOW + data.draw(st.integers(-1, 1)) * TICK
    try:
        body = attenuate(
            parents,
            issuer=issuer.identity,
            audience=audience.identity,
            now=now,
            rights=rights,
            caveats=limits,
            expires=ends,
            not_before=begins,
        )
    except InvalidError as error:
        unchecked = Delegation(
            created=now,
            expires=ends,
            audience=audience.identity,
            caveats=limits,
            not_before=begins,
            parent=parents[-1].id,
            rights=tuple(sorted(rights)),
        )
        child = sign_object(unchecked, issuer)
        found = explain(holder_of(child), [*parents, child], now=now)
        assert error.code in {problem.code for link in found.links for problem in link.problems}
        return
    child = sign_object(body, issuer)
    verdict = explain(holder_of(child), [*parents, child], now=now)
    # Whether the child covers this call is its issuer's choice; that it narrows is the builder's promise.
    narrowing = {"right-missing", "other-capability", "other-publisher", "input-too-large"}
    assert verdict.code in {"delegated", "own-authority", *narrowing}


@st.composite
def any_bounds(draw: st.DrawFn) -> Bounds:
    start = draw(st.integers(0, 2)) * TICK
    link = Grant(
        PROVIDER,
        AGENT,
        " ".join(draw(all_rights)),
        start=start,
        end=start + draw(st.integers(1, 3)) * TICK,
        caveats=draw(caveats),
    )
    body = link.sign().body
    assert isinstance(body, Delegation)
    return Bounds.of(body)


@given(any_bounds(), any_bounds())
def test_what_two_links_leave_is_within_both(upper: Bounds, lower: Bounds) -> None:
    both = upper.narrowed_by(lower)
    assert not upper.excess_of(both)
    assert both.narrowed_by(both) == both
    if not upper.excess_of(lower):
        assert not lower.excess_of(both)


@given(any_bounds(), any_bounds(), any_bounds())
def test_a_third_link_is_held_to_both_above_it(top: Bounds, middle: Bounds, last: Bounds) -> None:
    if not top.narrowed_by(middle).excess_of(last):
        assert not top.excess_of(last)
        assert top.excess_of(middle) or not middle.excess_of(last)
