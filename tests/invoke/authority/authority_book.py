"""A provider's book of delegations over a store, for the tests."""

from __future__ import annotations

from collections.abc import Sequence

from authority_objects import NOW, Clock, ids, invoke

from bnw.invoke.authority.book import DelegationBook
from bnw.invoke.authority.ledger import UsageLedger
from bnw.invoke.resolve import Catalog
from bnw.objects.signed import SignedObject
from bnw.store.interface import Store
from bnw.wire.content_id import ContentId, content_id


def call(number: int) -> ContentId:
    return content_id(f"call {number}".encode())


def book_of(store: Store, clock: Clock | None = None) -> DelegationBook:
    clock = clock or Clock()
    return DelegationBook(store, Catalog(store, clock), clock)


async def known(store: Store, *objects: SignedObject) -> None:
    await store.put_objects(objects, now=NOW)


async def allowed(book: DelegationBook, links: Sequence[SignedObject], numbers: Sequence[int]) -> list[int]:
    """Which of these calls are let through."""
    through = []
    for number in numbers:
        verdict = await book.authorise(invoke(), ids(links), call=call(number))
        if verdict.allowed:
            through.append(number)
    return through


async def counted(store: Store, root: SignedObject, link: SignedObject) -> int:
    counters = await UsageLedger(store).read(root.id, [link.id])
    return counters[link.id].calls if counters else 0
