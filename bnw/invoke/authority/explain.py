"""The verdict on one chain of delegations. Pure: objects, time and counters in, a verdict out.

Checks come from the root down, and within a link in this order: is it there, does it hang on the link above, does it
stay within what stands above, is it for whoever uses it, does it hold now, does it cover this call, is it used up.
Each asks only about this link and those above it. The first problem gives the verdict its code; all problems of all
links are reported, because whoever has to mend a chain wants to do so once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from bnw.identity.keys import IdentityId, did_key
from bnw.invoke.authority.bounds import Bounds, Problem, moment_text
from bnw.invoke.authority.question import Question
from bnw.invoke.authority.usage import Usage
from bnw.invoke.authority.verdict import LinkFinding, Verdict, input_too_large, link_place
from bnw.objects.authority import RIGHT_DELEGATE, RIGHT_PROVIDE, Delegation, Revocation
from bnw.objects.signed import SignedObject
from bnw.wire.content_id import ContentId
from bnw.wire.limits import MAX_DELEGATION_CHAIN

NO_USAGE: Mapping[ContentId, Usage] = {}
BROKEN_PLACE = frozenset({"chain-broken", "wrong-root", "wrong-issuer", "not-delegable"})
"""Codes of a link that does not hang where it should: its issuer had no say here."""


def explain(
    question: Question,
    chain: Sequence[SignedObject | ContentId],
    *,
    revocations: Iterable[SignedObject] = (),
    now: int,
    usage: Mapping[ContentId, Usage] = NO_USAGE,
    already_counted: Collection[ContentId] = (),
) -> Verdict:
    """Judge `question` at `now` (milliseconds since the Unix epoch) by `chain`, which runs from the root to the actor.

    A link that is not here stands in the chain as its id. `revocations` may hold any; those that are not by the issuer
    of the very link do not count. `usage` has the counters that are kept here; whoever keeps none, such as a requester,
    leaves them out, and nothing is used up. Links in `already_counted` have counted this very call before, so that
    asking again about a call that was let through does not use it up itself.
    """
    standing = _without_chain(question)
    if standing is not None:
        return standing
    if not chain:
        cure = (
            "ask the publisher for one" if question.right == RIGHT_PROVIDE else "ask the provider or publisher for one"
        )
        return _no("no-delegation", f"{did_key(question.actor)} shows no delegation for this capability", cure)
    form = _check_form(chain)
    if form is not None:
        return _no(form.code, form.cause, form.cure)

    revoked = {
        (revocation.signer, revocation.body.delegation)
        for revocation in revocations
        if isinstance(revocation.body, Revocation)
    }
    call = _Call(question, revoked, now, usage, already_counted)
    findings: list[LinkFinding] = []
    above: _Above | None = None
    for index, link in enumerate(chain):
        number, is_last = index + 1, index + 1 == len(chain)
        id = link.id if isinstance(link, SignedObject) else link
        if not isinstance(link, SignedObject) or not isinstance(link.body, Delegation):
            findings.append(LinkFinding(number, id, None, (_not_here(link),)))
            above = _Above(id, None, None, None if above is None else above.bounds)
            continue
        delegation, own = link.body, Bounds.of(link.body)
        problems = [
            *_check_place(call, link, delegation, above),
            *([] if above is None or above.bounds is None else above.bounds.excess_of(own)),
            *_check_user(call, delegation, is_last),
            *_check_times(call, link, delegation),
            *_check_caveats(call, link.id, own),
        ]
        findings.append(LinkFinding(number, id, link, tuple(problems)))
        bounds = own if above is None or above.bounds is None else above.bounds.narrowed_by(own)
        above = _Above(id, delegation.audience, delegation.rights, bounds)
    assert above is not None
    return _conclude(tuple(findings), above.bounds, already_counted)


@dataclass(frozen=True, slots=True)
class _Call:
    question: Question
    revoked: Collection[tuple[IdentityId, ContentId]]
    now: int
    usage: Mapping[ContentId, Usage]
    already_counted: Collection[ContentId]


@dataclass(frozen=True, slots=True)
class _Above:
    """What the next link hangs on. A link that is not here leaves audience and rights open, as it breaks the chain."""

    id: ContentId
    audience: IdentityId | None
    rights: Collection[str] | None
    bounds: Bounds | None


def _without_chain(question: Question) -> Verdict | None:
    """The verdict where no chain is needed, or none would help."""
    if question.actor in question.listed:
        return Verdict(True, "listed", f"{did_key(question.actor)} is named")
    if question.anyone:
        return Verdict(True, "open", f"anyone may {question.right} this capability")
    if question.actor in question.roots:
        return Verdict(True, "own-authority", f"{did_key(question.actor)} could grant this right, and so has it")
    if question.roots:
        return None
    if question.right == RIGHT_PROVIDE:
        return _no("publisher-only", "only the publisher provides this capability", "ask it to publish it as delegated")
    return _no(
        "not-allowed",
        f"{did_key(question.actor)} may not call this capability here, and delegations do not count",
        "ask the provider to allow your identity, or delegations",
    )


def _check_form(chain: Sequence[SignedObject | ContentId]) -> Problem | None:
    if len(chain) > MAX_DELEGATION_CHAIN:
        return Problem(
            "chain-too-long",
            f"the chain has {len(chain)} links; at most {MAX_DELEGATION_CHAIN} are followed",
            "ask somebody nearer to the root for a delegation",
        )
    ids = [link.id if isinstance(link, SignedObject) else link for link in chain]
    if len(set(ids)) != len(ids):
        twice = next(id for number, id in enumerate(ids) if id in ids[:number])
        return Problem("chain-loop", f"delegation {twice.hex()} is in the chain twice", "leave the repetition out")
    return None


def _not_here(link: SignedObject | ContentId) -> Problem:
    if isinstance(link, SignedObject):
        return Problem("not-a-delegation", f"is a {link.kind}", "name only delegations in a chain")
    return Problem(
        "delegation-missing",
        "is not known here; it may have expired, or not have come yet",
        "deliver the whole chain with the call",
    )


def _check_place(call: _Call, link: SignedObject, delegation: Delegation, above: _Above | None) -> Iterator[Problem]:
    """Does it hang on the link above, or, as the first one, on a root of authority?"""
    if above is None:
        if delegation.parent is not None:
            yield Problem(
                "chain-broken",
                f"hangs on {delegation.parent.hex()}, which the chain leaves out",
                "show the whole chain, the root first",
            )
        if link.signer not in call.question.roots:
            yield Problem(
                "wrong-root",
                f"is by {did_key(link.signer)}, whose word does not count for the right to {call.question.right} this",
                f"ask {' or '.join(sorted(did_key(root) for root in call.question.roots))}",
            )
        return
    if delegation.parent != above.id:
        hangs_on = "nothing" if delegation.parent is None else delegation.parent.hex()
        yield Problem(
            "chain-broken",
            f"hangs on {hangs_on}, not on the link before it, {above.id.hex()}",
            "show the chain in order, the root first",
        )
    if above.audience is not None and link.signer != above.audience:
        yield Problem(
            "wrong-issuer",
            f"is by {did_key(link.signer)}, but the link before it is for {did_key(above.audience)}",
            "only whom a link is for can delegate further",
        )
    if above.rights is not None and RIGHT_DELEGATE not in above.rights:
        yield Problem(
            "not-delegable",
            "the link before it does not grant the right to delegate",
            f"ask for one that does, or for a delegation directly from the issuer of {above.id.hex()}",
        )


def _check_user(call: _Call, delegation: Delegation, is_last: bool) -> Iterator[Problem]:
    """Is it for whoever uses it, and for what it is used for?"""
    if is_last and delegation.audience != call.question.actor:
        yield Problem(
            "wrong-audience",
            f"is for {did_key(delegation.audience)}, but {did_key(call.question.actor)} acts",
            "a delegation is only good for the identity that it names",
        )
    if call.question.right not in delegation.rights:
        yield Problem(
            "right-missing",
            f"does not grant the right to {call.question.right}",
            "ask its issuer for one that does",
        )


def _check_times(call: _Call, link: SignedObject, delegation: Delegation) -> Iterator[Problem]:
    """Does it hold now? Exact, by this node's clock; builders begin a delegation early to allow for others' clocks."""
    if (link.signer, link.id) in call.revoked:
        yield Problem("delegation-revoked", "was revoked by its issuer", "ask for a new one")
    if call.now < delegation.not_before:
        yield Problem(
            "not-yet-valid",
            f"holds only from {moment_text(delegation.not_before)}; here it is {moment_text(call.now)}",
            "wait, or check that both clocks are set",
        )
    if call.now >= delegation.expires:
        yield Problem(
            "delegation-expired",
            f"held until {moment_text(delegation.expires)}; here it is {moment_text(call.now)}",
            "ask for a new one",
        )


def _check_caveats(call: _Call, id: ContentId, own: Bounds) -> Iterator[Problem]:
    question = call.question
    if own.capability not in {None, question.capability}:
        yield Problem(
            "other-capability",
            f"covers only another capability than {question.capability.hex()}",
            "ask for one for this capability; a capability that was published anew has a new id",
        )
    if own.publisher not in {None, question.publisher}:
        yield Problem(
            "other-publisher",
            f"covers only capabilities of another publisher than {did_key(question.publisher)}",
            "ask for one for this publisher",
        )
    if own.max_input_bytes is not None and (question.input_bytes or 0) > own.max_input_bytes:
        yield input_too_large(question.input_bytes or 0, own.max_input_bytes)
    if id in call.already_counted:
        return
    usage = call.usage.get(id, Usage())
    if own.max_calls is not None and usage.calls >= own.max_calls:
        yield Problem(
            "calls-used-up",
            f"grants {own.max_calls:,} calls, which it and all below it have used",
            "ask for a new one",
        )
    if own.max_calls_per_hour is not None and usage.calls_in_last_hour(call.now) >= own.max_calls_per_hour:
        again = usage.next_call_at(call.now, own.max_calls_per_hour)
        yield Problem(
            "rate-exceeded",
            f"grants {own.max_calls_per_hour:,} calls an hour, which it and all below it have used",
            f"try again at {moment_text(again)}",
        )


def _conclude(links: tuple[LinkFinding, ...], bounds: Bounds | None, already_counted: Collection[ContentId]) -> Verdict:
    for link in links:
        if link.problems:
            first = link.problems[0]
            issuer = None if link.delegation is None else link.delegation.signer
            place = link_place(link.number, len(links), link.id, issuer)
            return Verdict(False, first.code, first.cause, first.cure, place, links)
    counted = tuple(link.id for link in links if _counts(link.grants()) and link.id not in already_counted)
    return Verdict(
        True,
        "delegated",
        "every link of the chain holds",
        links=links,
        root=links[0].id,
        counted=counted,
        max_input_bytes=None if bounds is None else bounds.max_input_bytes,
    )


def _counts(grants: Bounds | None) -> bool:
    return grants is not None and (grants.max_calls is not None or grants.max_calls_per_hour is not None)


def _no(code: str, cause: str, cure: str) -> Verdict:
    return Verdict(False, code, cause, cure)
