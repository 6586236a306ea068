"""What a provider asks before it runs a call: is the chain good now, and if so, count the call.

    explain      the verdict as it stands; counts nothing. Early, to refuse a call before its input is fetched
    authorise    the verdict, and the call is counted. Last, in the same breath as "about to run"

A delegation that was valid when a call was sent, or when it was accepted, may be revoked by the time it runs, so the
last word is spoken then. A call counts from that moment, once, whatever becomes of it; calls that are refused before do
not count. The same call asks again without counting again, also after a restart (`bnw.invoke.authority.ledger`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

import anyio

from bnw.invoke.authority.chains import ChainSource
from bnw.invoke.authority.explain import BROKEN_PLACE, explain
from bnw.invoke.authority.ledger import Counter, UsageLedger
from bnw.invoke.authority.lookup import CatalogReader, Found, find
from bnw.invoke.authority.question import Question
from bnw.invoke.authority.verdict import LinkFinding, Verdict
from bnw.objects.authority import Delegation
from bnw.objects.signed import SignedObject
from bnw.store.interface import Store
from bnw.wire.content_id import ContentId
from bnw.wire.environment import Environment
from bnw.wire.errors import InvalidError
from bnw.wire.limits import MAX_DELEGATION_CHAIN

MAX_REMEMBERED_CALLS = 4096
"""Calls of this run whose counted links are remembered; beyond that the counters' own memory serves."""


class DelegationBook:
    """Delegations, revocations and counters of one node's store. Methods raise `LocalError` as the store does."""

    def __init__(self, store: Store, catalog: CatalogReader, environment: Environment) -> None:
        self._store = store
        self._catalog = catalog
        self._environment = environment
        self._ledger = UsageLedger(store)
        self._counted: OrderedDict[ContentId, frozenset[ContentId]] = OrderedDict()
        # Two calls that ask at once for the last one granted must not both get it.
        self._lock = anyio.Lock()

    async def explain(self, question: Question, ids: Sequence[ContentId]) -> Verdict:
        """The verdict on the chain of delegations `ids`, root first, with what is known here. Counts nothing."""
        verdict, _ = await self._judge(question, ids, None)
        return verdict

    async def authorise(self, question: Question, ids: Sequence[ContentId], *, call: ContentId) -> Verdict:
        """The verdict, and if it is yes, `call` (an invocation id) is durably counted before this returns."""
        async with self._lock:
            verdict, counters = await self._judge(question, ids, call)
            if verdict.root is None or not verdict.counted:
                return verdict
            to_count = [
                link.delegation for link in verdict.links if link.delegation is not None and link.id in verdict.counted
            ]
            try:
                await self._ledger.count(verdict.root, to_count, counters, call, self._environment.now_ms())
            except InvalidError as error:
                return verdict.refused(error)
            self._remember(call, verdict.counted)
            return verdict

    async def chain_to(self, leaf: ContentId) -> tuple[SignedObject | ContentId, ...]:
        """The chain that ends at the delegation `leaf`, as far as it is known here (`ChainSource.chain_to`)."""
        links: list[SignedObject] = []
        id: ContentId | None = leaf
        while id is not None and len(links) <= MAX_DELEGATION_CHAIN:
            obj = await self._store.get_object(id)
            if obj is None or not isinstance(obj.body, Delegation):
                break
            links.append(obj)
            id = obj.body.parent
        return ChainSource(links).chain_to(leaf)

    async def find(self, question: Question) -> Found:
        """A chain in the catalog that answers `question` with yes (`bnw.invoke.authority.lookup.find`)."""
        return await find(self._catalog, question, now=self._environment.now_ms())

    async def remove_expired(self) -> int:
        """Forget the counters of delegations that have expired. For the node's regular maintenance."""
        async with self._lock:
            return await self._ledger.remove_expired(self._environment.now_ms())

    async def _judge(
        self, question: Question, ids: Sequence[ContentId], call: ContentId | None
    ) -> tuple[Verdict, dict[ContentId, Counter]]:
        """First by what the chain itself says. Only issuers who are rightly in it may make us read more about them."""
        chain = await self._links(ids)
        verdict = explain(question, chain, now=self._environment.now_ms())
        genuine = _rightly_placed(verdict.links)
        if not genuine:
            return verdict, {}
        revocations = await self._catalog.revocations_of(genuine)
        counters = await self._ledger.read(genuine[0].id, [link.id for link in genuine])
        counted: set[ContentId] = set()
        if call is not None:
            counted |= self._counted.get(call, frozenset())
            counted |= {id for id, counter in counters.items() if call in counter.recent}
        verdict = explain(
            question,
            chain,
            revocations=revocations,
            now=self._environment.now_ms(),
            usage={id: counter.usage for id, counter in counters.items()},
            already_counted=counted,
        )
        return verdict, counters

    async def _links(self, ids: Sequence[ContentId]) -> list[SignedObject | ContentId]:
        if len(ids) > MAX_DELEGATION_CHAIN:
            return list(ids)
        return [await self._store.get_object(id) or id for id in ids]

    def _remember(self, call: ContentId, links: Sequence[ContentId]) -> None:
        self._counted[call] = self._counted.get(call, frozenset()) | frozenset(links)
        self._counted.move_to_end(call)
        if len(self._counted) > MAX_REMEMBERED_CALLS:
            self._counted.popitem(last=False)


def _rightly_placed(links: Sequence[LinkFinding]) -> list[SignedObject]:
    """The links up to the first that does not hang where it should."""
    genuine: list[SignedObject] = []
    for link in links:
        if link.delegation is None or any(problem.code in BROKEN_PLACE for problem in link.problems):
            break
        genuine.append(link.delegation)
    return genuine
