"""What a transfer asks of whom: the core without I/O."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from bnw.blobs.plan import MAX_KNOWN_SOURCES, MAX_SOURCES, Claims, FetchPlan, Order
from bnw.blobs.sources import FIRST_REST, GRACE, LONGEST_REST, MAX_ASKED, MAX_PROBES, MIN_RATE, WINDOW, Wanted
from bnw.transport.interface import PeerId
from bnw.wire.content_id import ContentId, content_id
from bnw.wire.errors import InvalidError
from bnw.wire.limits import KIB

A, B, C = PeerId("a"), PeerId("b"), PeerId("c")
CHUNK = WINDOW


def chunk(number: int, size: int = CHUNK) -> Wanted:
    return Wanted(content_id(b"%d" % number), size, size)


def plan_of(count: int, *peers: PeerId, size: int = CHUNK, claims: Claims | None = None) -> FetchPlan:
    plan = FetchPlan([chunk(number, size) for number in range(count)], claims or Claims())
    for peer in peers:
        plan.add_source(peer)
    return plan


def orders(plan: FetchPlan, now: float = 0.0) -> list[tuple[PeerId, int]]:
    numbers = {wanted.id: number for number, wanted in enumerate(plan.wanted)}
    return [(order.peer, numbers[order.wanted.id]) for order in plan.assign(now)]


def give(plan: FetchPlan, peer: PeerId, now: float = 0.0) -> None:
    """`peer` answers what is due, and the blob is stored."""
    due = plan.due(peer)
    assert due is not None
    plan.gave(peer, now)
    plan.kept(due.id)


def test_sources_get_the_next_chunk_each_in_the_order_wanted() -> None:
    plan = plan_of(4, A, B)
    assert orders(plan) == [(A, 0), (B, 1)]
    give(plan, B)
    assert orders(plan) == [(B, 2)]
    give(plan, A)
    assert orders(plan) == [(A, 3)]


def test_one_source_has_one_chunk_on_its_way_until_that_is_durable() -> None:
    plan = plan_of(3, A)
    assert orders(plan) == [(A, 0)]
    plan.gave(A, 0.0)
    assert orders(plan) == [], "received, but not durable yet"
    plan.kept(chunk(0).id)
    assert orders(plan) == [(A, 1)]


def test_small_blobs_are_asked_for_many_at_a_time_once_a_source_has_shown_that_it_has_some() -> None:
    plan = plan_of(1000, A, size=KIB)
    assert orders(plan) == [(A, 0)]
    give(plan, A)
    assert orders(plan) == [(A, number) for number in range(1, 1 + MAX_ASKED)]


def test_small_blobs_on_their_way_never_exceed_the_window() -> None:
    plan = plan_of(1000, A, size=100 * KIB)
    orders(plan)
    give(plan, A)
    assert len(orders(plan)) == WINDOW // (100 * KIB)


def test_no_more_than_so_many_sources_have_work_at_once() -> None:
    peers = [PeerId(f"p{number}") for number in range(10)]
    plan = plan_of(20, *peers)
    assert [peer for peer, _ in orders(plan)] == peers[:MAX_SOURCES]
    plan.failed(peers[0], "wrong-bytes", 0.0)
    assert orders(plan) == [(peers[MAX_SOURCES], 0)], "the place of one that lied is taken, and its chunk asked again"


def test_what_a_source_lacks_is_asked_of_the_next_and_of_it_no_more() -> None:
    plan = plan_of(1, A, B)
    assert orders(plan) == [(A, 0)]
    plan.absent(A, 0.0)
    assert orders(plan) == [(B, 0)]
    plan.absent(B, 0.0)
    assert orders(plan) == []
    assert plan.is_hopeless
    assert plan.story() == "a (absent), b (absent)"


def test_a_source_that_gives_nothing_is_left_alone_after_some_questions() -> None:
    plan = plan_of(100, A)
    for _ in range(MAX_PROBES):
        assert len(orders(plan)) == 1
        plan.absent(A, 0.0)
    assert orders(plan) == []
    assert plan.is_hopeless


def test_a_source_that_has_given_something_is_asked_for_all_that_it_may_have() -> None:
    plan = plan_of(100, A)
    orders(plan)
    give(plan, A)
    asked = 0
    while orders(plan):
        plan.absent(A, 0.0)
        asked += 1
    assert asked == 99
    assert plan.is_hopeless


@pytest.mark.parametrize("code", ["wrong-bytes", "blob-size", "message", "protocol"])
def test_a_source_that_lies_or_babbles_is_not_asked_again(code: str) -> None:
    plan = plan_of(2, A, B)
    orders(plan)
    plan.failed(A, code, 0.0)
    give(plan, B)
    assert orders(plan) == [(B, 0)]
    plan.failed(B, "stream-closed", 1.0)
    assert orders(plan, 1000.0) == [(B, 0)]
    plan.left(A)
    plan.add_source(A)
    assert orders(plan, 1000.0) == [], "coming back does not make it honest"
    assert f"a ({code})" in plan.story()


def test_a_source_that_broke_off_rests_longer_each_time_but_is_asked_again() -> None:
    plan = plan_of(1, A)
    now, rests = 0.0, []
    for _ in range(9):
        assert orders(plan, now) == [(A, 0)]
        plan.failed(A, "stream-closed", now)
        assert orders(plan, now) == []
        assert not plan.is_hopeless
        rests.append(plan.next_time(now) - now)
        now = plan.next_time(now)
    assert rests == [FIRST_REST * 2**number for number in range(6)] + [LONGEST_REST] * 3


def test_a_source_that_stalled_rests_longest_at_once() -> None:
    plan = plan_of(1, A)
    orders(plan)
    plan.failed(A, "stream-stalled", 5.0)
    assert plan.next_time(5.0) == 5.0 + LONGEST_REST


def test_a_busy_source_rests_and_its_other_answers_are_still_taken() -> None:
    plan = plan_of(4, A, size=KIB)
    orders(plan)
    give(plan, A)
    assert orders(plan) == [(A, 1), (A, 2), (A, 3)]
    plan.busy(A, 0.0)
    give(plan, A)
    assert plan.due(A) == chunk(3, KIB)
    assert orders(plan, FIRST_REST / 2) == []
    assert orders(plan, FIRST_REST) == [(A, 1)]


def test_a_source_that_went_away_gives_back_what_it_was_asked_and_may_return() -> None:
    plan = plan_of(2, A, B)
    assert orders(plan) == [(A, 0), (B, 1)]
    plan.left(A)
    assert plan.due(A) is None
    assert not plan.is_hopeless
    plan.add_source(A)
    assert orders(plan) == [(A, 0)]


def test_what_a_lost_source_gave_already_stays() -> None:
    plan = plan_of(2, A)
    orders(plan)
    plan.gave(A, 0.0)
    plan.failed(A, "stream-closed", 0.0)
    assert not plan.is_hopeless
    plan.kept(chunk(0).id)
    assert plan.kept_bytes == CHUNK
    assert orders(plan, 1.0) == [(A, 1)]


def test_a_plan_without_sources_is_hopeless_and_a_complete_one_is_done() -> None:
    plan = plan_of(1)
    assert plan.is_hopeless
    assert plan.story() == "nobody"
    plan.found(chunk(0).id)
    assert plan.is_complete


def test_what_is_in_the_store_already_is_never_asked_for() -> None:
    plan = plan_of(3, A)
    plan.found(chunk(1).id)
    assert plan.kept_bytes == CHUNK
    assert orders(plan) == [(A, 0)]
    give(plan, A)
    assert orders(plan) == [(A, 2)]


def test_equal_chunks_are_fetched_once() -> None:
    plan = FetchPlan([chunk(0), chunk(0), chunk(1)], Claims())
    assert plan.total_bytes == 2 * CHUNK


def test_peers_beyond_a_bound_are_not_remembered() -> None:
    plan = plan_of(1, *(PeerId(f"p{number}") for number in range(MAX_KNOWN_SOURCES + 50)))
    assert len(plan.story().split(", ")) == MAX_KNOWN_SOURCES


class TestPatience:
    def test_silence_is_borne_for_the_grace(self) -> None:
        plan = plan_of(1, A)
        orders(plan, 100.0)
        assert plan.deadline(A) == 100.0 + GRACE

    def test_time_spent_on_opening_a_stream_is_not_held_against_the_source(self) -> None:
        plan = plan_of(1, A)
        orders(plan, 100.0)
        plan.opened(A, 107.0)
        assert plan.deadline(A) == 107.0 + GRACE

    def test_a_slow_but_steady_source_is_never_out_of_patience(self) -> None:
        plan = plan_of(1, A)
        now = 0.0
        orders(plan, now)
        for _ in range(CHUNK // MIN_RATE):
            now += 1.0
            assert plan.deadline(A) > now
            plan.progressed(A, MIN_RATE, now)
        assert plan.deadline(A) == now + GRACE

    def test_a_byte_now_and_then_buys_next_to_nothing(self) -> None:
        plan = plan_of(1, A)
        now = 0.0
        orders(plan, now)
        while now < plan.deadline(A):
            plan.progressed(A, 1, now)
            now += 0.9
        assert now < GRACE + 1.0

    def test_small_answers_at_long_intervals_run_out_of_patience_too(self) -> None:
        plan = plan_of(500, A, size=KIB)
        now = 0.0
        answers = 0
        while True:
            orders(plan, now)
            now += GRACE * 0.6
            if now >= plan.deadline(A):
                break
            plan.progressed(A, KIB, now)
            give(plan, A, now)
            answers += 1
        assert answers < 3

    def test_saying_each_time_in_the_last_moment_that_it_has_nothing_uses_patience_up_as_well(self) -> None:
        plan = plan_of(100, A)
        now = 0.0
        answers = 0
        while orders(plan, now) and now + GRACE * 0.8 < plan.deadline(A):
            now += GRACE * 0.8
            plan.absent(A, now)
            answers += 1
        assert answers == 1

    def test_patience_is_not_used_up_while_nothing_is_due(self) -> None:
        plan = plan_of(2, A)
        orders(plan, 0.0)
        plan.progressed(A, CHUNK, 1.0)
        give(plan, A, 1.0)
        orders(plan, 500.0)
        assert plan.deadline(A) == 500.0 + GRACE


class TestTwoTransfers:
    def test_what_one_has_asked_for_the_other_does_not_ask_for(self) -> None:
        claims = Claims()
        one, other = plan_of(3, A, claims=claims), plan_of(3, A, claims=claims)
        assert orders(one) == [(A, 0)]
        assert orders(other) == [(A, 1)]
        give(one, A)
        assert other.kept_bytes == CHUNK, "what one keeps both have"
        assert orders(one) == [(A, 2)]
        give(other, A)
        assert orders(other) == []
        assert not other.is_hopeless
        give(one, A)
        assert one.is_complete
        assert other.is_complete

    def test_what_an_ended_one_leaves_behind_the_other_asks_for(self) -> None:
        claims = Claims()
        one, other = plan_of(1, A, claims=claims), plan_of(1, A, claims=claims)
        assert orders(one) == [(A, 0)]
        assert orders(other) == []
        one.close()
        assert orders(other) == [(A, 0)]

    def test_waiting_for_the_other_is_not_hopeless_even_without_a_source(self) -> None:
        claims = Claims()
        one, other = plan_of(1, A, claims=claims), plan_of(1, claims=claims)
        orders(one)
        assert not other.is_hopeless
        one.failed(A, "wrong-bytes", 0.0)
        assert other.is_hopeless


@pytest.mark.parametrize(("size", "fits"), [(9, False), (10, True), (20, True), (21, False)])
def test_a_blob_of_a_size_that_is_not_wanted_is_refused(size: int, fits: bool) -> None:
    wanted = Wanted(ContentId(bytes(32)), most=20, least=10)
    if fits:
        wanted.check_size(size)
    else:
        with pytest.raises(InvalidError) as caught:
            wanted.check_size(size)
        assert caught.value.code == "blob-size"


@given(st.lists(st.integers(0, 3 * WINDOW), min_size=1, max_size=50))
def test_one_honest_source_always_gives_everything_whatever_the_sizes(sizes: Sequence[int]) -> None:
    plan = FetchPlan([Wanted(content_id(b"%d" % n), size, size) for n, size in enumerate(sizes)], Claims())
    plan.add_source(A)
    asked: list[Order] = []
    while not plan.is_complete:
        asked += plan.assign(0.0)
        give(plan, A)
    assert [order.wanted for order in asked] == list(plan.wanted), "each once, in order"
    assert plan.kept_bytes == plan.total_bytes == sum(sizes)


class AnythingHappens(RuleBasedStateMachine):
    """Sources come, go, lie, stall and answer in any order, over two transfers of the same blobs."""

    @initialize(count=st.integers(1, 12), size=st.sampled_from([100, 300 * KIB, CHUNK]))
    def begin(self, count: int, size: int) -> None:
        self.now = 0.0
        self.claims = Claims()
        self.plans = [plan_of(count, size=size, claims=self.claims) for _ in range(2)]
        self.asked: list[dict[PeerId, list[ContentId]]] = [{}, {}]
        self.storing: list[list[ContentId]] = [[], []]
        self.kept: set[ContentId] = set()

    @rule(which=st.integers(0, 1), peer=st.sampled_from([A, B, C]))
    def connect(self, which: int, peer: PeerId) -> None:
        self.plans[which].add_source(peer)
        self.asked[which].setdefault(peer, [])

    @rule(which=st.integers(0, 1), peer=st.sampled_from([A, B, C]))
    def leave(self, which: int, peer: PeerId) -> None:
        self.plans[which].left(peer)
        if peer in self.asked[which]:
            self.asked[which][peer] = []

    @rule(seconds=st.floats(0, 40))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(which=st.integers(0, 1))
    def assign(self, which: int) -> None:
        for order in self.plans[which].assign(self.now):
            assert order.wanted.id not in self.kept
            elsewhere = [id for asked in self.asked for ids in asked.values() for id in ids] + [
                id for ids in self.storing for id in ids
            ]
            assert order.wanted.id not in elsewhere, "nothing is fetched twice at the same time"
            self.asked[which][order.peer].append(order.wanted.id)

    @rule(which=st.integers(0, 1), data=st.data(), answer=st.sampled_from(["gave", "gave", "absent", "busy"]))
    def answer(self, which: int, data: st.DataObject, answer: str) -> None:
        peers = [peer for peer, ids in self.asked[which].items() if ids]
        if peers:
            peer = data.draw(st.sampled_from(peers))
            due = self.plans[which].due(peer)
            id = self.asked[which][peer].pop(0)
            assert due is not None
            assert due.id == id
            getattr(self.plans[which], answer)(peer, self.now)
            if answer == "gave":
                self.storing[which].append(id)

    @rule(which=st.integers(0, 1), data=st.data())
    def store(self, which: int, data: st.DataObject) -> None:
        if self.storing[which]:
            id = data.draw(st.sampled_from(self.storing[which]))
            self.storing[which].remove(id)
            self.plans[which].kept(id)
            self.kept.add(id)

    @rule(which=st.integers(0, 1), peer=st.sampled_from([A, B, C]), code=st.sampled_from(["lied", "stream-closed"]))
    def fail(self, which: int, peer: PeerId, code: str) -> None:
        if peer in self.asked[which]:
            self.plans[which].failed(peer, code, self.now)
            self.asked[which][peer] = []

    @precondition(lambda self: len(self.plans) == 2)
    @rule()
    def somebody_else_puts_one_into_the_store(self) -> None:
        plan = self.plans[0]
        todo = [wanted.id for wanted in plan.wanted if wanted.id not in self.kept]
        idle = [id for id in todo if self.claims.owner(id) is None]
        if idle:
            self.claims.kept(idle[0])
            self.kept.add(idle[0])

    @invariant()
    def nothing_is_lost(self) -> None:
        if not hasattr(self, "plans"):
            return
        for plan, asked, storing in zip(self.plans, self.asked, self.storing, strict=True):
            missing = {wanted.id for wanted in plan.wanted if plan.is_missing(wanted.id)}
            assert missing == {wanted.id for wanted in plan.wanted} - self.kept
            assert plan.is_complete == (not missing)
            in_flight = [id for ids in asked.values() for id in ids] + storing
            assert len(in_flight) == len(set(in_flight))
            owned = {id for id in missing if self.claims.owner(id) is plan}
            assert owned == set(in_flight)

    def teardown(self) -> None:
        """However it went, one honest newcomer finishes it."""
        if not hasattr(self, "plans"):
            return
        for other in self.plans[1:]:
            other.close()
        plan, honest = self.plans[0], PeerId("honest")
        for peer in (A, B, C):
            plan.left(peer)
        for id in self.storing[0]:
            plan.kept(id)
        plan.add_source(honest)
        while not plan.is_complete:
            assert plan.assign(self.now) or plan.due(honest)
            give(plan, honest, self.now)


TestAnythingHappens = AnythingHappens.TestCase
