"""Builds delegations and revocations that readers will accept. Pure; the caller signs what it gets.

A reader refuses a child that is wider than its parent or outlives it. Whoever signs one would learn so only when a call
is rejected somewhere else, so the builders refuse it first, with the reader's own codes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import reduce

from bnw.identity.keys import IdentityId, did_key
from bnw.invoke.authority.bounds import Bounds, moment_text
from bnw.objects.authority import RIGHT_DELEGATE, Caveats, Delegation, Revocation
from bnw.objects.signed import SignedObject
from bnw.wire.errors import InvalidError
from bnw.wire.limits import (
    CANCELLING_LIFETIME_MAX,
    CANCELLING_LIFETIME_MIN,
    CLOCK_SKEW,
    DELEGATION_LIFETIME,
    MAX_DELEGATION_CHAIN,
)

NO_CAVEATS = Caveats(capability=None, max_calls=None, max_calls_per_hour=None, max_input_bytes=None, publisher=None)


def grant(
    *,
    audience: IdentityId,
    rights: Collection[str],
    now: int,
    expires: int,
    not_before: int | None = None,
    caveats: Caveats = NO_CAVEATS,
) -> Delegation:
    """The first link of a chain, to be signed by a root of authority. Times in milliseconds since the Unix epoch.

    It begins `CLOCK_SKEW` before `now` unless `not_before` says otherwise, so that it holds at once where the clock is
    slow. What is wrong in form (`lifetime`, an unknown right, no right) is refused when it is signed.
    """
    return Delegation(
        created=now,
        expires=expires,
        audience=audience,
        caveats=caveats,
        not_before=max(1, now - CLOCK_SKEW) if not_before is None else not_before,
        parent=None,
        rights=tuple(sorted(set(rights))),
    )


def attenuate(
    chain: Sequence[SignedObject],
    *,
    issuer: IdentityId,
    audience: IdentityId,
    now: int,
    rights: Collection[str] | None = None,
    expires: int | None = None,
    not_before: int | None = None,
    caveats: Caveats = NO_CAVEATS,
) -> Delegation:
    """A link below the last one of `chain` (root first), to be signed by `issuer`.

    What is left out is not narrowed: the same rights except to delegate further, and the same end. A null caveat leaves
    the limits above in force. Raises `InvalidError`: `chain-too-long`, `wrong-issuer`, `not-delegable`,
    `delegation-expired`, `exceeds-parent` or `outlives-parent`.
    """
    links = [link.body for link in chain]
    assert links and all(isinstance(body, Delegation) for body in links), "a chain of delegations"
    bodies = [body for body in links if isinstance(body, Delegation)]
    above = reduce(Bounds.narrowed_by, map(Bounds.of, bodies))
    parent = chain[-1]
    if len(chain) >= MAX_DELEGATION_CHAIN:
        raise InvalidError(
            "chain-too-long",
            f"the chain has {len(chain)} links already, which is all that is followed",
            place=parent.id.hex(),
            cure="ask somebody nearer to the root to delegate",
        )
    if bodies[-1].audience != issuer:
        raise InvalidError(
            "wrong-issuer",
            f"the delegation is for {did_key(bodies[-1].audience)}, so {did_key(issuer)} cannot pass it on",
            place=parent.id.hex(),
            cure="delegate as the identity that it is for",
        )
    if RIGHT_DELEGATE not in above.rights:
        raise InvalidError(
            "not-delegable",
            "the delegation does not grant the right to delegate",
            place=parent.id.hex(),
            cure="ask its issuer for one that does",
        )
    if now >= above.expires:
        raise InvalidError(
            "delegation-expired",
            f"the chain held until {moment_text(above.expires)}",
            place=parent.id.hex(),
            cure="ask for a new one first",
        )
    child = Delegation(
        created=now,
        expires=min(above.expires, now + DELEGATION_LIFETIME) if expires is None else expires,
        audience=audience,
        caveats=caveats,
        not_before=max(above.not_before, now - CLOCK_SKEW) if not_before is None else not_before,
        parent=parent.id,
        rights=tuple(sorted(above.rights - {RIGHT_DELEGATE} if rights is None else set(rights))),
    )
    for problem in above.excess_of(Bounds.of(child)):
        raise InvalidError(
            problem.code,
            f"the new delegation {problem.cause}",
            place=parent.id.hex(),
            cure="leave out what is wider, or ask for more first",
        )
    return child


def revoke(delegation: SignedObject, *, issuer: IdentityId, now: int) -> Revocation:
    """Take a delegation back, and with it all below it. Raises `InvalidError` (`wrong-issuer`).

    It lasts as long as a revocation must, and longer if a clock that was ahead made the delegation last longer.
    """
    if delegation.signer != issuer:
        raise InvalidError(
            "wrong-issuer",
            f"the delegation is by {did_key(delegation.signer)}, and only its issuer can revoke it",
            place=delegation.id.hex(),
            cure="revoke a link above it that you issued, which ends everything below",
        )
    longest = max(now + CANCELLING_LIFETIME_MIN, delegation.body.expires + 2 * CLOCK_SKEW)
    return Revocation(created=now, expires=min(longest, now + CANCELLING_LIFETIME_MAX), delegation=delegation.id)
