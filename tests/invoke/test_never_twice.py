"""A call runs at most once: repeats, replays, crashes and restored backups, with whole nodes."""

from __future__ import annotations

import anyio
import pytest
from call_stage import NAME, QUESTION, AskedOf, copy_of, stage, until

from bnw.invoke.asked import AskedCalls
from bnw.objects.calls import Receipt
from bnw.wire.errors import InvalidError, LocalError, RemoteError
from bnw.wire.limits import DAY, MINUTE

pytestmark = pytest.mark.anyio


async def test_two_copies_at_the_same_time_over_two_paths_run_once() -> None:
    async with stage() as s, s.both() as (provider, requester):
        s.close_gate()
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: requester.invoke(NAME, QUESTION))
            await until(lambda: bool(s.runs))
            objects = await s.sent()
            for peer in ("requester", "elsewhere", "requester"):
                group.start_soon(s.deliver_again, provider, objects, peer)
            await anyio.sleep(0.05)
            s.gate.set()
        assert len(s.runs) == 1


async def test_two_copies_that_arrive_before_anything_is_known_of_the_call_run_once() -> None:
    async with stage() as s:
        async with s.both() as (_, requester):
            await requester.invoke(NAME, QUESTION)
            objects = await s.sent()
        s.homes["provider"].store._records.clear()
        s.homes["provider"].environment.offset -= 60_000  # so that the call is not older than the start
        s.runs.clear()
        async with s.providing() as provider, anyio.create_task_group() as group:
            for peer in ("a", "b", "c"):
                group.start_soon(s.deliver_again, provider, objects, peer)
            s.homes["provider"].environment.offset += 120_000
            await until(lambda: bool(s.runs))
        assert len(s.runs) == 1


async def test_a_replay_after_the_receipt_was_collected_does_not_run() -> None:
    async with stage() as s, s.both() as (provider, requester):
        result = await requester.invoke(NAME, QUESTION)
        objects = await s.sent()
        index = s.homes["provider"].store._index
        assert index.find(result.receipt.id) is not None
        await s.deliver_again(provider, objects, "elsewhere")
        await anyio.sleep(0.05)
        assert len(s.runs) == 1


async def test_a_replay_after_a_week_is_refused_for_its_age() -> None:
    async with stage() as s, s.both() as (provider, requester):
        await requester.invoke(NAME, QUESTION)
        objects = await s.sent()
        for home in s.homes.values():
            home.environment.offset += 7 * DAY
        await provider._provider.remove_expired(s.homes["provider"].environment.now_ms())
        with pytest.raises(RemoteError, match="invalid"):
            await requester._requester._parts.courier.deliver(requester._transport.peers()[0].peer, objects)
        assert len(s.runs) == 1


async def test_a_provider_restored_from_an_older_backup_does_not_run_the_call_again_and_says_so() -> None:
    async with stage() as s:
        async with s.both() as (_, requester):
            backup = copy_of(s.homes["provider"].store)
            first = await requester.invoke(NAME, QUESTION)
            objects = await s.sent()
        assert first.status == "completed"
        s.homes["provider"].store = backup
        async with s.both() as (provider, requester):
            await s.deliver_again(provider, objects)
            entry = await provider._provider._journal.get(objects[1].id)
            assert entry is not None and entry.signed_receipt is not None
            receipt = entry.signed_receipt.body
            assert isinstance(receipt, Receipt) and receipt.fault is not None
            assert (receipt.status, receipt.fault.code) == ("interrupted", "not-known-to-be-new")
            assert len(s.runs) == 1
            again = await requester.invoke(NAME, QUESTION)
            assert again.status == "completed", "calls made since run as ever"


async def test_a_backup_from_between_acceptance_and_run_does_not_run_the_call_again() -> None:
    async with stage() as s:
        async with s.both() as (provider, requester), anyio.create_task_group() as group:
            backup = None
            put = provider._provider._journal.put

            async def putting(id, entry, objects=(), *, now):
                nonlocal backup
                await put(id, entry, objects, now=now)
                if entry.state == "accepted":
                    backup = copy_of(s.homes["provider"].store)

            provider._provider._journal.put = putting
            await requester.invoke(NAME, QUESTION)
            group.cancel_scope.cancel()
        assert backup is not None
        s.homes["provider"].store = backup
        async with s.both() as (provider, _):
            [(id, _record)] = await AskedOf(s.homes["requester"]).all()
            await until(lambda: not provider._provider._live)
            entry = await provider._provider._journal.get(id)
            assert entry is not None and entry.signed_receipt is not None
            assert entry.signed_receipt.body.fault.code == "restarted"
        assert len(s.runs) == 1


@pytest.mark.parametrize("idempotent", [False, True], ids=["runs-once", "idempotent"])
async def test_after_a_crash_in_mid_run_the_receipt_says_interrupted_unless_the_handler_is_idempotent(
    idempotent: bool,
) -> None:
    async with stage() as s:
        crashed = None
        async with s.both(idempotent=idempotent) as (_, requester):
            s.close_gate()
            with anyio.CancelScope() as killed:
                async with anyio.create_task_group() as group:
                    group.start_soon(lambda: requester.invoke(NAME, QUESTION))
                    await until(lambda: bool(s.runs))
                    crashed = copy_of(s.homes["provider"].store)
                    killed.cancel()
        s.homes["provider"].store = crashed
        s.gate.set()
        async with s.both(idempotent=idempotent) as (_, requester):
            [(id, _)] = await requester.calls.all()
            result = await requester.calls.wait(id, lambda step, details: None)
        assert result.status == ("completed" if idempotent else "interrupted")
        assert len(s.runs) == (2 if idempotent else 1)
        assert {call.invocation for call in s.runs} == {id}


async def test_a_killed_requester_is_taken_up_by_wait_and_the_call_ran_once() -> None:
    async with stage() as s, s.providing():
        s.close_gate()
        async with s.node("requester", peers=("mem:provider",)) as requester:
            with anyio.CancelScope() as killed:
                async with anyio.create_task_group() as group:
                    group.start_soon(lambda: requester.invoke(NAME, QUESTION))
                    await until(lambda: bool(s.runs))
                    killed.cancel()
        s.gate.set()
        async with s.node("requester", peers=("mem:provider",)) as requester:
            [(id, _)] = await requester.calls.all()
            result = await requester.calls.wait(id, lambda step, details: None)
            again = await requester.calls.wait(id, lambda step, details: None)
        assert result.output is not None and result.output.data == b"QUESTION"
        assert again.receipt == result.receipt
        assert len(s.runs) == 1


async def test_a_call_that_was_signed_and_never_left_is_delivered_by_wait() -> None:
    async with stage() as s, s.both() as (_, requester):
        unsent = AskedCalls.put
        with anyio.CancelScope() as killed:

            async def put_and_die(self, id, call, objects=(), *, now):
                await unsent(self, id, call, objects, now=now)
                killed.cancel()
                await anyio.sleep(0)

            requester._requester.records.put = put_and_die.__get__(requester._requester.records)
            await requester.invoke(NAME, QUESTION)
        del requester._requester.records.put
        [(id, record)] = await requester.calls.all()
        assert record.state == "signed" and not s.runs
        assert (await requester.calls.wait(id, lambda step, details: None)).status == "completed"


async def test_a_requester_whose_clock_is_behind_calls_a_provider_that_has_just_started() -> None:
    async with stage() as s:
        s.homes["requester"].environment.offset = -4 * MINUTE
        async with s.both() as (_, requester):
            result = await requester.invoke(NAME, QUESTION)
        assert result.status == "completed"
        assert len(s.runs) == 1


async def test_a_requester_whose_clock_is_ahead_waits_until_the_provider_has_caught_up() -> None:
    async with stage() as s:
        s.homes["requester"].environment.offset = 300
        async with s.both() as (_, requester):
            began = anyio.current_time()
            result = await requester.invoke(NAME, QUESTION)
        assert result.status == "completed"
        assert anyio.current_time() - began > 0.2


async def test_a_clock_beyond_the_accepted_skew_is_told_so() -> None:
    async with stage() as s, s.both() as (_, requester):
        await requester.inspect(NAME)
        s.homes["requester"].environment.offset = 6 * MINUTE
        with pytest.raises((RemoteError, LocalError, InvalidError)) as caught:
            await requester.invoke(NAME, QUESTION, patience=1)
        assert caught.value.code in {"refused-invalid", "no-inbox-key"}
        assert not s.runs
