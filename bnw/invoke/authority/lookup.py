"""Finds a chain in the catalog that answers a question with yes: which provider may provide, what a requester shows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from bnw.identity.keys import IdentityId
from bnw.invoke.authority.chains import Chain, ChainSource
from bnw.invoke.authority.explain import explain
from bnw.invoke.authority.question import Question
from bnw.invoke.authority.verdict import Verdict
from bnw.objects.authority import Delegation
from bnw.objects.body import Body
from bnw.objects.signed import SignedObject


class CatalogReader(Protocol):
    """What is needed of `bnw.invoke.resolve.Catalog`, which uses this module itself."""

    async def all(self, body: type[Body], *, signer: IdentityId | None = None) -> list[SignedObject]: ...

    async def revocations_of(self, links: Sequence[SignedObject]) -> list[SignedObject]: ...


@dataclass(frozen=True, slots=True)
class Found:
    """A verdict and the chain that it is about; empty if none is needed or none was found."""

    verdict: Verdict
    chain: Chain = ()


async def find(catalog: CatalogReader, question: Question, *, now: int) -> Found:
    """The first chain that answers `question` with yes, or else why the likeliest one does not.

    Looks at what the roots themselves signed before it reads all delegations: that is an indexed read, and what others
    sign cannot get in its way. Counters are the provider's affair and are not asked.
    """
    verdict = explain(question, (), now=now)
    if verdict.code != "no-delegation":
        return Found(verdict)
    direct: list[SignedObject] = []
    for root in sorted(question.roots):
        direct += await catalog.all(Delegation, signer=root)
    found = await _first_yes(question, ChainSource(direct).chains_for(question), catalog, now)
    if found is not None and found.verdict.allowed:
        return found
    everything = ChainSource(await catalog.all(Delegation))
    found = await _first_yes(question, everything.chains_for(question), catalog, now)
    return Found(verdict) if found is None else found


async def _first_yes(question: Question, chains: Iterable[Chain], catalog: CatalogReader, now: int) -> Found | None:
    likeliest = None
    for chain in chains:
        verdict = explain(question, chain, now=now)
        if verdict.allowed:
            verdict = explain(question, chain, revocations=await catalog.revocations_of(chain), now=now)
        if verdict.allowed:
            return Found(verdict, chain)
        likeliest = likeliest or Found(verdict, chain)
    return likeliest
