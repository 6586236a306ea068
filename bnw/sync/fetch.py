"""Asks a peer for objects by id, checks and stores what comes, and remembers what did not.

Objects are judged by their bytes alone. One that was not asked for, or comes twice, ends the session; one with a bad
signature does too, after the good objects beside it have been stored.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import anyio

from bnw.objects.admission import Blame, blame_for
from bnw.objects.rules import is_expired
from bnw.objects.signed import SignedObject, UnverifiedObject
from bnw.store.interface import PutOutcome, Store
from bnw.sync.bounded import BoundedMemory, Claims
from bnw.sync.checking import Check, Verify, read_objects
from bnw.sync.protocol import MAX_IDS_PER_WANT
from bnw.sync.session import PullSession
from bnw.transport.interface import PeerId
from bnw.wire.content_id import ContentId, content_id
from bnw.wire.environment import Environment
from bnw.wire.errors import BnwError, InvalidError
from bnw.wire.limits import MINUTE

logger = logging.getLogger(__name__)

WANTS_UNDER_WAY: Final = 2
"""Requests that a peer may have, so that it works on the next while we work on its last answer."""
MAX_UNWANTED: Final = 16_384
"""Ids remembered of objects that this node will not keep; about 3 MB."""
UNWANTED_LIFETIME: Final = 10 * MINUTE
FUTURE_LIFETIME: Final = 1 * MINUTE
"""The same for objects whose time has not come yet by our clock."""
MAX_WITHHELD: Final = 16_384
"""Pairs of peer and id remembered of what was offered and not delivered; about 4 MB."""
WITHHELD_LIFETIME: Final = 10 * MINUTE

NEWS: Final = frozenset({PutOutcome.ADDED, PutOutcome.EQUIVOCATION})
IN_SCOPE: Final = frozenset({PutOutcome.ADDED, PutOutcome.KNOWN})
"""Outcomes after which our side offers the object too, so that it will not be found missing again."""

OnNews = Callable[[SignedObject], None]
"""Told of each object that a pull brought and the store took in. Must not block."""


class Avoided:
    """What is not worth asking for, although peers offer it.

    What this node will not keep is remembered by id, whoever offers it: an id stands for its bytes, so nobody can have
    a better object by the same id. What a peer offered and did not deliver is remembered for that peer alone;
    otherwise anybody could keep us from an object by offering it.
    """

    def __init__(self) -> None:
        self._unwanted: BoundedMemory[ContentId] = BoundedMemory(MAX_UNWANTED)
        self._withheld: BoundedMemory[tuple[PeerId, ContentId]] = BoundedMemory(MAX_WITHHELD)

    def worth_asking(self, peer: PeerId, ids: Sequence[ContentId], now: int) -> list[ContentId]:
        return [id for id in ids if not self._unwanted.holds(id, now) and not self._withheld.holds((peer, id), now)]

    def refuse(self, id: ContentId, now: int, code: str) -> None:
        """The object is not to be kept, for the reason `code`."""
        lifetime = FUTURE_LIFETIME if code == "from-the-future" else UNWANTED_LIFETIME
        self._unwanted.add(id, now + lifetime)

    def withhold(self, peer: PeerId, ids: Sequence[ContentId], now: int) -> None:
        """`peer` did not deliver."""
        for id in ids:
            self._withheld.add((peer, id), now + WITHHELD_LIFETIME)


@dataclass(slots=True)
class Fetched:
    """What became of the ids that were to be asked for. Those in neither list have not been asked for."""

    arrived: list[ContentId] = field(default_factory=list)
    """Here now, from this peer or another, or refused by this node."""
    withheld: list[ContentId] = field(default_factory=list)
    """Asked for and not delivered."""
    news: int = 0


class Fetcher:
    """Fetches for any number of sessions at once.

    An id that one session has asked for is skipped by the others, which come back to it when they are through with the
    rest: peers that have the same share the work, and one that stalls costs the others nothing.
    """

    def __init__(
        self,
        store: Store,
        environment: Environment,
        avoided: Avoided,
        *,
        check: Check,
        verify: Verify,
        on_news: OnNews,
    ) -> None:
        self.store = store
        self.environment = environment
        self.avoided = avoided
        self.check = check
        self.verify = verify
        self.on_news = on_news
        self.asked: Claims[ContentId] = Claims()
        """Ids that some peer has been asked for; until they are stored, or not delivered."""

    async def fetch(self, session: PullSession, ids: Sequence[ContentId], fetched: Fetched) -> None:
        """Ask for `ids` and add to `fetched` what becomes of them.

        Raises as `PullSession` does, and `LocalError`. Good objects that arrived before are stored all the same.
        """
        fetch = _Fetch(self, session, fetched)
        try:
            try:
                await fetch.run(ids)
            finally:
                await fetch.store_checked()
        finally:
            self.asked.release(fetch.claimed)


class _Fetch:
    """One call of `fetch`. While signatures of one part of what arrives are checked, the part before it is stored."""

    def __init__(self, owner: Fetcher, session: PullSession, fetched: Fetched) -> None:
        self._owner = owner
        self._session = session
        self._fetched = fetched
        self.claimed: dict[ContentId, None] = {}
        self._checked: list[SignedObject] = []
        """Good objects that are still to be stored."""

    async def run(self, ids: Sequence[ContentId]) -> None:
        waiting, skipped = deque(ids), deque[ContentId]()
        under_way: deque[list[ContentId]] = deque()
        while waiting or skipped or under_way:
            while (waiting or skipped) and len(under_way) < WANTS_UNDER_WAY and self._session.may_ask:
                batch = await self._missing_of(_next_batch(waiting, skipped, self._owner.asked))
                if batch:
                    self._claim(batch)
                    under_way.append(batch)
                    await self._session.want(batch)
            if not under_way:
                break
            await self._take_answer(under_way.popleft())

    async def _missing_of(self, batch: list[ContentId]) -> list[ContentId]:
        missing = await self._owner.store.missing_objects(batch)
        absent = set(missing)
        self._fetched.arrived += [id for id in batch if id not in absent]
        return missing

    async def _take_answer(self, asked: Sequence[ContentId]) -> None:
        open_ids = dict.fromkeys(asked)
        more = True
        while more:
            answer = await self._session.objects()
            fault = await self._check(answer.objects, open_ids)
            if fault is not None:
                raise fault
            more = answer.more
        self._owner.avoided.withhold(self._session.peer, list(open_ids), self._owner.environment.now_ms())
        self._fetched.withheld += open_ids
        self._release(open_ids)

    async def _check(self, batch: Sequence[bytes], open_ids: dict[ContentId, None]) -> InvalidError | None:
        """Check a part of an answer; returns what the peer is to blame for."""
        now = self._owner.environment.now_ms()
        fault: InvalidError | None = None
        ids: list[ContentId] = []
        for data in batch:
            id = content_id(data)
            if id not in open_ids:
                fault = InvalidError("sync-unasked", "an object that was not asked for, or twice", place=id.hex())
                break
            del open_ids[id]
            ids.append(id)
        bad: list[tuple[ContentId, InvalidError]] = []
        unverified: list[UnverifiedObject] = []
        for id, read in zip(ids, await read_objects(batch[: len(ids)], now, self._owner.check), strict=True):
            if isinstance(read, InvalidError):
                bad.append((id, read))
            else:
                unverified.append(read)
        for obj, verified in zip(unverified, await self._verify(unverified), strict=True):
            if isinstance(verified, InvalidError):
                bad.append((obj.id, verified))
            else:
                self._checked.append(verified)
        for id, error in bad:
            self._owner.avoided.refuse(id, now, error.code)
            self._fetched.arrived.append(id)
            self._release([id])
            if blame_for(error) is Blame.SENDER:
                fault = fault or error
            else:
                logger.info("an object is not taken in: %s", error)
        return fault

    async def _verify(self, unverified: Sequence[UnverifiedObject]) -> list[SignedObject | InvalidError]:
        """Check signatures, and meanwhile store what has been checked before."""
        errors: list[BnwError] = []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._store_beside, errors)
            verified = await self._owner.verify(unverified)
        if errors:
            raise errors[0]
        return verified

    async def _store_beside(self, errors: list[BnwError]) -> None:
        # Raised by the task group, the error would arrive as a group of one.
        try:
            await self.store_checked()
        except BnwError as error:
            errors.append(error)

    async def store_checked(self) -> None:
        """Store what has been checked. One bad object does not cost us the good ones before or beside it."""
        owner = self._owner
        now = owner.environment.now_ms()
        # The time has moved on since they were checked, and the store takes nothing that has expired.
        objects = [obj for obj in self._checked if not is_expired(obj.body, now)]
        ids = [obj.id for obj in self._checked]
        self._checked = []
        for obj, outcome in zip(objects, await owner.store.put_objects(objects, now=now), strict=True):
            if outcome not in IN_SCOPE:
                owner.avoided.refuse(obj.id, now, outcome.value)
            if outcome in NEWS:
                self._fetched.news += 1
                owner.on_news(obj)
        self._fetched.arrived += ids
        self._release(ids)

    def _claim(self, ids: Iterable[ContentId]) -> None:
        new = [id for id in ids if id not in self.claimed]
        self.claimed.update(dict.fromkeys(new))
        self._owner.asked.claim(new)

    def _release(self, ids: Iterable[ContentId]) -> None:
        for id in ids:
            del self.claimed[id]
            self._owner.asked.release([id])


def _next_batch(waiting: deque[ContentId], skipped: deque[ContentId], asked: Claims[ContentId]) -> list[ContentId]:
    """What to ask for next; while anything is waiting, what has been asked for elsewhere is put off."""
    batch: list[ContentId] = []
    while waiting and len(batch) < MAX_IDS_PER_WANT:
        id = waiting.popleft()
        (skipped if id in asked else batch).append(id)
    while not waiting and skipped and len(batch) < MAX_IDS_PER_WANT:
        batch.append(skipped.popleft())
    return batch
