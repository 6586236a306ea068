"""The authorization table: who, chain, policy and time, and the verdict with its reason (design section 11).

A row reads: this identity, showing this chain, asks under this policy, at this time after `NOW`, and gets this verdict;
`at` is the link that is to blame. What is not said is an input of 100 bytes, no revocation, and no call before. The
chains are in `authority_chains`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from authority_chains import (
    AND_BACK,
    BY_ITSELF,
    BY_PUBLISHER,
    BY_STRANGER,
    CALLER_AS_HOST,
    DIRECT,
    EARLIER_END,
    EARLIER_START,
    FROM_DELEGATE,
    HOST,
    HOSTED,
    INHERITS,
    JUST_AS_WIDE,
    LATER_END,
    LATER_START,
    NO_INPUT,
    NONE,
    NOT_DELEGABLE,
    ONLY_DELEGATE,
    OTHER_CAPABILITY,
    OTHER_PUBLISHER,
    OWN_SHARE,
    PAIR,
    ROOT_AGAIN,
    SELF_MADE_HOST,
    SHARED_CALLS,
    SMALL_INPUT,
    STOLEN,
    THIS_CAPABILITY,
    THIS_PUBLISHER,
    THREE_AN_HOUR,
    THREE_CALLS,
    TO_PROVIDE,
    TWO_ROOTS,
    WIDER_CALLS,
    WIDER_CAPABILITY,
    WIDER_INPUT,
    WIDER_PUBLISHER,
    WIDER_RATE,
    WIDER_RIGHTS,
    WIDER_THAN_MIDDLE,
    WIDER_THAN_TOP,
)
from authority_objects import (
    AGENCY,
    AGENT,
    ANYONE,
    DELEGATED,
    MANIFEST,
    NOBODY,
    NOW,
    PROVIDER,
    PUBLISHER,
    STRANGER,
    Policy,
    invoke,
    listed,
    long_chain,
    manifest,
    provide,
    revoked,
)

from bnw.identity.keys import SigningKey
from bnw.invoke.authority.explain import explain
from bnw.invoke.authority.usage import Usage
from bnw.objects.signed import SignedObject
from bnw.wire.content_id import ContentId
from bnw.wire.limits import DAY, HOUR, MINUTE
from bnw.wire.names import is_name

YES = frozenset({"open", "listed", "own-authority", "delegated"})

Links = Sequence[SignedObject | ContentId]


@dataclass(frozen=True)
class Row:
    says: str
    who: SigningKey
    chain: Links
    policy: Policy | str
    """A provider's policy on calls, or who may provide according to the manifest."""
    time: int
    code: str
    at: int | None = None
    size: int | None = 100
    used: Sequence[int] = ()
    """Calls that each link of the chain has counted, all half an hour after `NOW`."""
    revoked: Sequence[SignedObject] = ()
    of: SignedObject = MANIFEST


H, LISTED = HOUR, listed(AGENT)
STRANGERS = manifest(key=STRANGER)
ANEW = manifest(sequence=2)
LOOP = [*PAIR, PAIR[1]]
GAP = [long_chain(3)[0], long_chain(3)[2]]
NO_PARENT: Links = [PAIR[0].id, PAIR[1]]
NO_CHILD: Links = [PAIR[0], PAIR[1].id]

CALLS = [
    # What the policy decides alone.
    Row("by default nobody may call", AGENT, NONE, NOBODY, H, "not-allowed"),
    Row("by default a good chain does not help", AGENT, DIRECT, NOBODY, H, "not-allowed"),
    Row("by default the publisher may not either", PUBLISHER, NONE, NOBODY, H, "not-allowed"),
    Row("anyone may call", STRANGER, NONE, ANYONE, H, "open"),
    Row("anyone may call, whatever they show", STRANGER, DIRECT, ANYONE, H, "open"),
    Row("a listed identity may call", AGENT, NONE, LISTED, H, "listed"),
    Row("one that is not listed may not", STRANGER, NONE, LISTED, H, "not-allowed"),
    Row("where a list counts, a chain does not", STRANGER, DIRECT, LISTED, H, "not-allowed"),
    # Whose word counts.
    Row("the provider may call itself", PROVIDER, NONE, DELEGATED, H, "own-authority"),
    Row("the publisher may call", PUBLISHER, NONE, DELEGATED, H, "own-authority"),
    Row("nobody else without a chain", STRANGER, NONE, DELEGATED, H, "no-delegation"),
    Row("the provider delegates", AGENT, DIRECT, DELEGATED, H, "delegated"),
    Row("the publisher delegates", AGENT, BY_PUBLISHER, DELEGATED, H, "delegated"),
    Row("others have nothing to delegate", AGENT, BY_STRANGER, DELEGATED, H, "wrong-root", at=1),
    Row("nobody grants themselves", AGENT, BY_ITSELF, DELEGATED, H, "wrong-root", at=1),
    Row("a publisher, for another's capability", AGENT, BY_PUBLISHER, DELEGATED, H, "wrong-root", at=1, of=STRANGERS),
    Row("the provider, for another's capability", AGENT, DIRECT, DELEGATED, H, "delegated", of=STRANGERS),
    # How links hang together.
    Row("an agency passes it on", AGENT, PAIR, DELEGATED, H, "delegated"),
    Row("an agency uses its own", AGENCY, PAIR[:1], DELEGATED, H, "delegated"),
    Row("an agency does not use its client's", AGENCY, PAIR, DELEGATED, H, "wrong-audience", at=2),
    Row("a stranger uses another's", STRANGER, DIRECT, DELEGATED, H, "wrong-audience", at=1),
    Row("a stranger uses another's whole chain", STRANGER, PAIR, DELEGATED, H, "wrong-audience", at=2),
    Row("a stranger passes on what it has not", AGENT, STOLEN, DELEGATED, H, "wrong-issuer", at=2),
    Row("not even the root issues in between", AGENT, ROOT_AGAIN, DELEGATED, H, "wrong-issuer", at=2),
    Row("passing on without the right to", AGENT, NOT_DELEGABLE, DELEGATED, H, "not-delegable", at=2),
    Row("only the right to delegate", AGENCY, ONLY_DELEGATE, DELEGATED, H, "right-missing", at=1),
    Row("a call from only the right to delegate", AGENT, FROM_DELEGATE, DELEGATED, H, "right-missing", at=1),
    Row("only the right to provide", AGENT, TO_PROVIDE, DELEGATED, H, "right-missing", at=1),
    Row("eight links", AGENT, long_chain(8), DELEGATED, H, "delegated"),
    Row("nine links", AGENT, long_chain(9), DELEGATED, H, "chain-too-long"),
    Row("a link twice", AGENT, LOOP, DELEGATED, H, "chain-loop"),
    Row("back to whom it came from", AGENCY, AND_BACK, DELEGATED, H, "delegated"),
    Row("the first link left out", AGENT, PAIR[1:], DELEGATED, H, "chain-broken", at=1),
    Row("one in the middle left out", AGENT, GAP, DELEGATED, H, "chain-broken", at=2),
    Row("the last link first", AGENT, PAIR[::-1], DELEGATED, H, "chain-broken", at=1),
    Row("two first links", AGENT, TWO_ROOTS, DELEGATED, H, "chain-broken", at=2),
    Row("the first link is not known here", AGENT, NO_PARENT, DELEGATED, H, "delegation-missing", at=1),
    Row("the last link is not known here", AGENT, NO_CHILD, DELEGATED, H, "delegation-missing", at=2),
    Row("some other object in the chain", AGENT, [MANIFEST, PAIR[1]], DELEGATED, H, "not-a-delegation", at=1),
    # Attenuation.
    Row("a child with a right more", AGENT, WIDER_RIGHTS, DELEGATED, H, "exceeds-parent", at=2),
    Row("a child with more calls", AGENT, WIDER_CALLS, DELEGATED, H, "exceeds-parent", at=2),
    Row("a child with a higher rate", AGENT, WIDER_RATE, DELEGATED, H, "exceeds-parent", at=2),
    Row("a child with larger inputs", AGENT, WIDER_INPUT, DELEGATED, H, "exceeds-parent", at=2),
    Row("a child for another capability", AGENT, WIDER_CAPABILITY, DELEGATED, H, "exceeds-parent", at=2),
    Row("a child for another publisher", AGENT, WIDER_PUBLISHER, DELEGATED, H, "exceeds-parent", at=2),
    Row("a grandchild with more than the top", AGENT, WIDER_THAN_TOP, DELEGATED, H, "exceeds-parent", at=3),
    Row("a grandchild with more than the middle", AGENT, WIDER_THAN_MIDDLE, DELEGATED, H, "exceeds-parent", at=3),
    Row("a child that ends later", AGENT, LATER_END, DELEGATED, H, "outlives-parent", at=2),
    Row("a child that begins earlier", AGENT, EARLIER_START, DELEGATED, H, "outlives-parent", at=2),
    Row("a child with as much", AGENT, JUST_AS_WIDE, DELEGATED, H, "delegated"),
    Row("a child that states no limit has one", AGENT, INHERITS, DELEGATED, H, "input-too-large", at=1),
    # Time.
    Row("a moment too early", AGENT, DIRECT, DELEGATED, -1, "not-yet-valid", at=1),
    Row("from the first moment", AGENT, DIRECT, DELEGATED, 0, "delegated"),
    Row("to the last", AGENT, DIRECT, DELEGATED, DAY - 1, "delegated"),
    Row("not at the end", AGENT, DIRECT, DELEGATED, DAY, "delegation-expired", at=1),
    Row("before the child begins", AGENT, LATER_START, DELEGATED, H, "not-yet-valid", at=2),
    Row("once the child begins", AGENT, LATER_START, DELEGATED, 2 * H, "delegated"),
    Row("after the child's end", AGENT, EARLIER_END, DELEGATED, H, "delegation-expired", at=2),
    # Caveats.
    Row("for this capability", AGENT, THIS_CAPABILITY, DELEGATED, H, "delegated"),
    Row("for another capability", AGENT, OTHER_CAPABILITY, DELEGATED, H, "other-capability", at=1),
    Row("for what was published anew since", AGENT, THIS_CAPABILITY, DELEGATED, H, "other-capability", at=1, of=ANEW),
    Row("for all of this publisher", AGENT, THIS_PUBLISHER, DELEGATED, H, "delegated"),
    Row("for all of another", AGENT, OTHER_PUBLISHER, DELEGATED, H, "other-publisher", at=1),
    Row("an input of just the size", AGENT, SMALL_INPUT, DELEGATED, H, "delegated", size=100),
    Row("an input a byte larger", AGENT, SMALL_INPUT, DELEGATED, H, "input-too-large", at=1, size=101),
    Row("an input of unknown size", AGENT, SMALL_INPUT, DELEGATED, H, "delegated", size=None),
    Row("an empty input where none is granted", AGENT, NO_INPUT, DELEGATED, H, "delegated", size=0),
    Row("a byte where none is granted", AGENT, NO_INPUT, DELEGATED, H, "input-too-large", at=1, size=1),
    # Counted caveats.
    Row("the last call", AGENT, THREE_CALLS, DELEGATED, H, "delegated", used=[2]),
    Row("one more", AGENT, THREE_CALLS, DELEGATED, H, "calls-used-up", at=1, used=[3]),
    Row("one more, another hour", AGENT, THREE_CALLS, DELEGATED, 9 * H, "calls-used-up", at=1, used=[3]),
    Row("others used what the parent had", AGENT, SHARED_CALLS, DELEGATED, H, "calls-used-up", at=1, used=[3, 0]),
    Row("its own share is used", AGENT, OWN_SHARE, DELEGATED, H, "calls-used-up", at=2, used=[5, 3]),
    Row("its own share is not used", AGENT, OWN_SHARE, DELEGATED, H, "delegated", used=[8, 2]),
    Row("the last call of an hour", AGENT, THREE_AN_HOUR, DELEGATED, H, "delegated", used=[2]),
    Row("one more in the hour", AGENT, THREE_AN_HOUR, DELEGATED, H, "rate-exceeded", at=1, used=[3]),
    Row("the first of the next", AGENT, THREE_AN_HOUR, DELEGATED, 2 * H, "delegated", used=[3]),
]

ROOT_GONE, LEAF_GONE = [revoked(PAIR[0], PROVIDER)], [revoked(PAIR[1], AGENCY)]
BY_STRANGERS, FROM_ABOVE = [revoked(PAIR[0], STRANGER)], [revoked(PAIR[1], PROVIDER)]
DATED_LATER = [revoked(PAIR[0], PROVIDER, at=5 * MINUTE)]

REVOCATIONS = [
    Row("a link and all below it", AGENT, PAIR, DELEGATED, H, "delegation-revoked", at=1, revoked=ROOT_GONE),
    Row("by the agency, its own", AGENT, PAIR, DELEGATED, H, "delegation-revoked", at=2, revoked=LEAF_GONE),
    Row("what stands above goes on", AGENCY, PAIR[:1], DELEGATED, H, "delegated", revoked=LEAF_GONE),
    Row("by a stranger", AGENT, PAIR, DELEGATED, H, "delegated", revoked=BY_STRANGERS),
    Row("by the root, of another's link", AGENT, PAIR, DELEGATED, H, "delegated", revoked=FROM_ABOVE),
    Row("of another delegation", AGENT, DIRECT, DELEGATED, H, "delegated", revoked=ROOT_GONE),
    Row("before the time it states", AGENT, PAIR, DELEGATED, 0, "delegation-revoked", at=1, revoked=DATED_LATER),
    Row("where anyone may call anyway", AGENT, PAIR, ANYONE, H, "open", revoked=ROOT_GONE),
]

PROVIDING = [
    Row("the publisher provides", PUBLISHER, NONE, "publisher", H, "listed"),
    Row("nobody else", PROVIDER, NONE, "publisher", H, "publisher-only"),
    Row("nobody else, whatever they show", PROVIDER, HOST, "publisher", H, "publisher-only"),
    Row("anyone, if it is for anyone", STRANGER, NONE, "anyone", H, "open"),
    Row("the publisher, what it delegates", PUBLISHER, NONE, "delegated", H, "listed"),
    Row("others not without a chain", PROVIDER, NONE, "delegated", H, "no-delegation"),
    Row("others with one", PROVIDER, HOST, "delegated", H, "delegated"),
    Row("others through an agency", PROVIDER, HOSTED, "delegated", H, "delegated"),
    Row("with only the right to call", PROVIDER, CALLER_AS_HOST, "delegated", H, "right-missing", at=1),
    Row("with a chain of its own making", PROVIDER, SELF_MADE_HOST, "delegated", H, "wrong-root", at=1),
    Row("with the agency's", PROVIDER, HOSTED[:1], "delegated", H, "wrong-audience", at=1),
    Row("after the end", PROVIDER, HOST, "delegated", DAY, "delegation-expired", at=1),
]

TABLE = [
    *((f"calls: {row.says}", row) for row in CALLS),
    *((f"revocations: {row.says}", row) for row in REVOCATIONS),
    *((f"providing: {row.says}", row) for row in PROVIDING),
]


def usage_of(row: Row) -> dict[ContentId, Usage]:
    minute = (NOW + HOUR // 2) // MINUTE
    links = [link for link in row.chain if isinstance(link, SignedObject)]
    return {
        link.id: Usage(count, ((minute, count),) if count else ()) for link, count in zip(links, row.used, strict=False)
    }


@pytest.mark.parametrize("row", [row for _, row in TABLE], ids=[name for name, _ in TABLE])
def test_the_table(row: Row) -> None:
    if isinstance(row.policy, str):
        question = provide(row.who, row.policy)
    else:
        question = invoke(row.who, row.policy, size=row.size, of=row.of)
    verdict = explain(question, row.chain, revocations=row.revoked, now=NOW + row.time, usage=usage_of(row))

    assert (verdict.code, verdict.allowed) == (row.code, row.code in YES)
    assert next((link.number for link in verdict.links if link.problems), None) == row.at
    assert (verdict.place is not None) is (row.at is not None)
    assert is_name(verdict.code), "codes become fault codes of receipts"
    assert verdict.cause
    assert verdict.allowed or verdict.cure


def test_the_table_has_at_least_forty_rows_of_different_names() -> None:
    assert len({name for name, _ in TABLE}) == len(TABLE) >= 40


def test_every_reason_that_there_is_stands_in_the_table() -> None:
    assert {row.code for _, row in TABLE} == {
        *("open", "listed", "own-authority", "delegated"),
        *("not-allowed", "publisher-only", "no-delegation"),
        *("chain-too-long", "chain-loop", "chain-broken", "delegation-missing", "not-a-delegation"),
        *("wrong-root", "wrong-issuer", "wrong-audience", "not-delegable", "right-missing"),
        *("exceeds-parent", "outlives-parent"),
        *("not-yet-valid", "delegation-expired", "delegation-revoked"),
        *("other-capability", "other-publisher", "input-too-large", "calls-used-up", "rate-exceeded"),
    }
