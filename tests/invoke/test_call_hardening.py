"""Hard cases of a call, with whole nodes: authority that changes, cancels, time, equivocation, crowds, strangers."""

from __future__ import annotations

from dataclasses import replace

import anyio
import pytest
from call_stage import ANYONE, NAME, QUESTION, HeldEnvironment, new_home, stage, until

from bnw.identity.keys import SigningKey
from bnw.inbox.delivery import Mail
from bnw.inbox.payload import Payload, seal_payload
from bnw.invoke import running
from bnw.invoke.authority.build import NO_CAVEATS
from bnw.invoke.choice import Experience
from bnw.invoke.handlers import Call
from bnw.invoke.policy import CallPolicy
from bnw.invoke.proof import export_proof, verify_proof
from bnw.objects.calls import Cancellation, Fault, InvocationUpdate, Receipt
from bnw.objects.catalog import PROVIDE_ANYONE, ProviderOffer
from bnw.objects.signed import SignedObject, sign_object, trusted_object
from bnw.transport.interface import PeerId
from bnw.wire.content_id import ContentId
from bnw.wire.errors import InvalidError, LocalError, RemoteError
from bnw.wire.limits import DAY, HOUR

pytestmark = pytest.mark.anyio


def ignore(step: str, details: object) -> None:
    return None


async def test_a_delegation_that_is_revoked_while_the_call_waits_for_its_turn_does_not_run() -> None:
    async with stage() as s, s.both(CallPolicy(delegated=True)) as (provider, requester):
        grant = await provider.authority.delegate(requester.identity, rights=["invoke"], lifetime=HOUR)
        await until(lambda: s.homes["requester"].store._index.find(grant.id) is not None)
        explain = provider._book.explain

        async def explain_then_revoke(question, ids):
            verdict = await explain(question, ids)
            assert verdict.allowed, "the delegation held when the call came"
            await provider.authority.revoke(grant.id)
            return verdict

        provider._book.explain = explain_then_revoke
        result = await requester.invoke(NAME, QUESTION)
        assert (result.status, result.code) == ("rejected", "delegation-revoked")
        assert not s.runs


async def test_a_delegated_call_runs_as_often_as_it_was_granted() -> None:
    async with stage() as s, s.both(CallPolicy(delegated=True)) as (provider, requester):
        first = await requester.invoke(NAME, QUESTION)
        assert (first.status, first.code) == ("rejected", "not-allowed")

        grant = await provider.authority.delegate(
            requester.identity, rights=["invoke"], lifetime=HOUR, caveats=replace(NO_CAVEATS, max_calls=2)
        )
        await until(lambda: s.homes["requester"].store._index.find(grant.id) is not None)
        results = [await requester.invoke(NAME, QUESTION) for _ in range(3)]
        assert [result.status for result in results] == ["completed", "completed", "rejected"]
        assert len(s.runs) == 2


async def test_a_cancel_before_the_run_leaves_no_run() -> None:
    async with stage() as s, s.both() as (provider, requester):
        s.close_gate()
        provider._provider._slots = anyio.Semaphore(0)
        async with anyio.create_task_group() as group:
            results = []

            async def invoke() -> None:
                results.append(await requester.invoke(NAME, QUESTION))

            group.start_soon(invoke)
            await until(lambda: bool(provider._provider._live))
            [id] = provider._provider._live
            await requester.calls.cancel(id)
        assert (results[0].status, results[0].code) == ("cancelled", "cancelled")
        assert results[0].surely_not_run and not s.runs


async def test_a_cancel_during_the_run_stops_the_handler() -> None:
    async with stage() as s, s.both() as (_, requester):
        s.close_gate()
        async with anyio.create_task_group() as group:
            results = []

            async def invoke() -> None:
                results.append(await requester.invoke(NAME, QUESTION))

            group.start_soon(invoke)
            await until(lambda: bool(s.runs))
            await requester.calls.cancel(s.runs[0].invocation)
        assert results[0].status == "cancelled"
        assert not results[0].surely_not_run


async def test_a_cancel_that_crosses_the_receipt_changes_nothing() -> None:
    async with stage() as s, s.both() as (provider, requester):
        result = await requester.invoke(NAME, QUESTION)
        record = await requester.calls.find(result.invocation.id.hex())
        cancellation = requester._requester._open.get(record[0])
        assert cancellation is None

        now = s.homes["requester"].environment.now_ms()
        body = Cancellation(
            created=now, expires=now + HOUR, invocation=record[0], reason=None, recipient=provider.identity
        )
        late = sign_object(body, s.homes["requester"].key)
        await provider._desk.take(PeerId("requester"), Mail((), (late,)))
        entry = await provider._provider._journal.get(record[0])
        assert entry is not None and entry.receipt == result.receipt.data
        assert await requester.calls.cancel(record[0]) == "answered"


async def test_a_stranger_cannot_cancel() -> None:
    async with stage() as s, s.both() as (provider, requester):
        s.close_gate()
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: requester.invoke(NAME, QUESTION))
            await until(lambda: bool(s.runs))

            now = s.homes["provider"].environment.now_ms()
            body = Cancellation(
                created=now,
                expires=now + HOUR,
                invocation=s.runs[0].invocation,
                reason=None,
                recipient=provider.identity,
            )
            await provider._desk.take(PeerId("x"), Mail((), (sign_object(body, SigningKey(b"m" * 32)),)))
            s.gate.set()
        entry = await provider._provider._journal.get(s.runs[0].invocation)
        assert entry is not None and entry.signed_receipt.body.status == "completed"


async def test_the_total_deadline_and_the_inactivity_deadline_end_a_run() -> None:
    async with stage() as s, s.both() as (_, requester):
        s.close_gate()
        total = await requester.invoke(NAME, QUESTION, deadline_in=300)
        silent = await requester.invoke(NAME, QUESTION, inactivity=200)
    assert (total.status, total.code) == ("expired", "deadline-passed")
    assert (silent.status, silent.code) == ("expired", "inactive")


async def test_progress_keeps_a_call_alive_and_arrives_in_order() -> None:
    seen = []

    async def slow(call: Call) -> bytes:
        for step in range(5):
            call.report("step", step / 5, f"number {step}")
            await anyio.sleep(0.3)
        return b"done"

    def on_step(step, details) -> None:
        if step == "progress":
            seen.append(details["note"])

    async with stage() as s, s.both(handler=slow) as (_, requester):
        result = await requester.invoke(NAME, QUESTION, inactivity=900, on_step=on_step)
        assert result.status == "completed"
        assert seen == sorted(seen) and len(seen) >= 3
        _, record = await requester.calls.find(result.invocation.id.hex())
        assert len(record.updates) == len(seen)
        # Late and duplicate: nothing changes.
        for update in record.updates:
            await requester._requester.take_update(trusted_object(update))
        assert (await requester.calls.find(result.invocation.id.hex()))[1] == record


async def test_an_update_after_the_receipt_is_not_kept() -> None:
    async with stage() as s, s.both() as (_provider, requester):
        result = await requester.invoke(NAME, QUESTION)
        now = s.homes["provider"].environment.now_ms()
        body = InvocationUpdate(
            created=now,
            expires=now + HOUR,
            fraction=None,
            invocation=result.invocation.id,
            note=None,
            recipient=requester.identity,
            sequence=1,
            stage="late",
        )
        await requester._requester.take_update(sign_object(body, s.homes["provider"].key))
        assert (await requester.calls.find(result.invocation.id.hex()))[1].updates == ()


def forged(result, key: SigningKey, **changes: object) -> SignedObject:
    body = result.receipt.body
    assert isinstance(body, Receipt)
    return sign_object(replace(body, **changes), key)


async def test_a_receipt_of_another_call_or_by_somebody_else_is_not_taken() -> None:
    async with stage() as s, s.both() as (_, requester):
        result = await requester.invoke(NAME, QUESTION)
        key = s.homes["provider"].key
        assert not await requester._requester.take_receipt(forged(result, key, invocation=ContentId(b"x" * 32)), None)
        assert not await requester._requester.take_receipt(forged(result, SigningKey(b"m" * 32)), None)
        with pytest.raises(LocalError) as caught:
            await requester._desk.take(
                PeerId("provider"), Mail((), (forged(result, key, invocation=ContentId(b"x" * 32)),))
            )
        assert caught.value.code == "unwanted"


async def test_two_receipts_for_one_call_are_kept_as_proof_and_an_interrupted_one_is_no_contradiction() -> None:
    async with stage() as s, s.both() as (_, requester):
        result = await requester.invoke(NAME, QUESTION)
        key, id = s.homes["provider"].key, result.invocation.id.hex()
        humble = forged(result, key, status="interrupted", fault=Fault("restarted", "x"), output=None)
        await requester._requester.take_receipt(humble, None)
        assert (await requester.calls.find(id))[1].second_receipt is None
        lie = forged(result, key, status="failed", fault=Fault("handler-error", "x"), output=None)
        await requester._requester.take_receipt(lie, None)
        _, record = await requester.calls.find(id)
        assert record.receipt == result.receipt.data, "the first one counts"
        assert record.second_receipt == lie.data
        proof = verify_proof(await requester.calls.export(record))
        assert proof.contradiction is not None and proof.contradiction.id == lie.id


async def test_a_handler_that_raises_fails_the_call_and_nothing_else() -> None:
    async def raising(call: Call) -> bytes:
        raise RuntimeError("secret")

    async with stage() as s, s.both(handler=raising) as (_, requester):
        for _ in range(2):
            result = await requester.invoke(NAME, QUESTION)
            assert (result.status, result.code) == ("failed", "handler-error")
            assert b"secret" not in result.receipt.data


def synchronous(call: Call) -> bytes:
    call.report("half", 0.5)
    return call.input.data[::-1]


async def test_a_synchronous_python_function_is_a_handler_too() -> None:
    async with stage() as s, s.both(handler=synchronous) as (_, requester):
        result = await requester.invoke(NAME, QUESTION)
        assert result.output is not None and result.output.data == b"noitseuq"


async def test_a_thousand_callers_at_once_get_one_receipt_each_and_no_more_than_the_bound_run() -> None:
    now_running = most = ran = 0

    async with stage() as s:

        async def counted(call: Call) -> bytes:
            nonlocal now_running, most, ran
            now_running, ran = now_running + 1, ran + 1
            most = max(most, now_running)
            await s.gate.wait()
            now_running -= 1
            return b"ok"

        async with s.both(handler=counted) as (provider, requester):
            await requester.invoke(NAME, QUESTION)
            [_, model] = await s.sent()
            s.close_gate()
            environment, theirs = s.homes["provider"].environment, s.homes["provider"].keys.inbox_keys()[-1].public
            calls = []
            for number in range(1, 1001):
                key = SigningKey(number.to_bytes(32))
                recipients = {key.identity: theirs, provider.identity: theirs}
                sealed = seal_payload(QUESTION, sender=key, recipients=recipients, environment=environment)
                for chunk in sealed.chunks:
                    await s.homes["requester"].store.put_blob(chunk)
                calls.append([sealed.manifest, sign_object(replace(model.body, input=sealed.manifest.id), key)])
            async with anyio.create_task_group() as group:
                for call in calls:
                    group.start_soon(s.deliver_again, provider, call)
            await until(lambda: now_running == 8)
            assert len(provider._provider._live) == 8 + 256
            s.gate.set()
            await until(lambda: not provider._provider._live)
            codes: dict[str, int] = {}
            for _, call in calls:
                entry = await provider._provider._journal.get(call.id)
                assert entry is not None and entry.signed_receipt is not None
                fault = entry.signed_receipt.body.fault
                codes[fault.code] = codes.get(fault.code, 0) + 1
                assert fault.code != "busy" or "try again after 2000 ms" in fault.message
    # Those that ran have no inbox key to seal the answer to, which is not what this is about.
    assert codes == {"busy": 1000 - 264, "no-inbox-key": 264}
    assert (most, ran) == (8, 264 + 1)


async def test_what_strangers_send_costs_bounded_disk() -> None:
    async with stage() as s, s.both(CallPolicy()) as (provider, requester):
        result = await requester.invoke(NAME, QUESTION)
        assert (result.status, result.code) == ("rejected", "not-allowed")
        store = s.homes["provider"].store
        before = await store.statistics()
        [payload, invocation] = await s.sent()
        key, refused = s.homes["requester"].key, 0
        for number in range(150):
            call = sign_object(replace(invocation.body, deadline=invocation.body.deadline - number - 1), key)
            try:
                await s.deliver_again(provider, [payload, call])
            except LocalError as error:
                assert error.code == "busy"
                refused += 1
        after = await store.statistics()
        assert (after.objects, after.blobs) == (before.objects, before.blobs), "nothing but entries in the journal"
        assert refused == 51, "a hundred refused calls of one identity are remembered"


async def test_a_refused_call_does_not_run_when_the_policy_changes() -> None:
    policy = CallPolicy()
    async with stage() as s, s.both(lambda: policy) as (provider, requester):
        assert (await requester.invoke(NAME, QUESTION)).status == "rejected"
        policy = ANYONE
        await s.deliver_again(provider, await s.sent())
        assert not s.runs
        assert (await requester.invoke(NAME, QUESTION)).status == "completed"


async def test_a_payload_that_lists_more_than_its_size_is_refused_before_anything_is_fetched() -> None:
    async with stage() as s, s.both() as (_provider, requester):
        fetched = []

        async def fetch(*args: object) -> list[bytes]:
            fetched.append(args)
            return []

        original = running.fetch_chunks
        running.fetch_chunks = fetch
        try:
            sign = requester._requester._carry

            async def carry(payload, to, *, public, on_step):
                carried = await sign(payload, to, public=public, on_step=on_step)
                body = carried.manifest.body
                more = replace(body, size=body.size + 1)
                return replace(carried, manifest=sign_object(more, s.homes["requester"].key))

            requester._requester._carry = carry
            result = await requester.invoke(NAME, QUESTION)
        finally:
            running.fetch_chunks = original
        assert (result.status, result.code) == ("rejected", "payload-size")
        assert not fetched and not s.runs


async def test_rate_and_size_of_the_policy_hold() -> None:
    policy = CallPolicy(anyone=True, calls_per_minute=8, max_input_bytes=10)
    async with stage() as s, s.both(policy) as (_, requester):
        large = await requester.invoke(NAME, Payload(b"x" * 11, "text/plain"))
        assert (large.status, large.code) == ("rejected", "too-large")
        results = [await requester.invoke(NAME, QUESTION) for _ in range(2)]
        assert results[-1].code == "rate-limited" and results[-1].retry_after == 7500


async def test_a_plug_in_that_is_out_of_order_lets_no_input_pass_unchecked() -> None:
    async with stage() as s, s.both() as (provider, requester):

        class Limits:
            media_types = ("text/plain",)
            max_bytes = 1000
            privacy = "either"

        class Both:
            input = output = Limits

        [(id, provision)] = provider._provider._provisions.items()
        provider._provider._provisions[id] = replace(provision, limits=Both)
        result = await requester.invoke(NAME, QUESTION)
        assert (result.status, result.code) == ("rejected", "profile-unavailable")


async def test_the_next_provider_is_asked_only_when_the_first_has_signed_that_it_did_not_run() -> None:
    async with stage() as s:
        s.homes["other"] = new_home("other")
        async with (
            s.node("provider") as first,
            s.node("other", peers=("mem:provider",)) as second,
            s.node("requester", peers=("mem:provider", "mem:other")) as requester,
        ):
            await first.publish(NAME, b"opaque descriptor", provide=PROVIDE_ANYONE)
            await first.provide(NAME, s.echo, policy=CallPolicy())
            await second.provide(NAME, s.echo, policy=ANYONE)
            await until(lambda: len(requester._transport.peers()) == 2)
            with anyio.fail_after(10):
                while (await requester.entries())[0:1] == [] or (await requester.entries())[0].providers < 2:
                    await anyio.sleep(0.02)
            for _ in range(3):
                result = await requester.invoke(NAME, QUESTION)
                assert result.status == "completed" and result.receipt.signer == second.identity
            assert len(s.runs) == 3


async def test_the_order_of_providers_owes_nothing_to_the_sequence_of_offers() -> None:

    environment = HeldEnvironment("dice")
    now = environment.now_ms()
    offers = [
        sign_object(
            ProviderOffer(
                created=now,
                expires=now + HOUR,
                available=True,
                capability=ContentId(b"c" * 32),
                endpoints=(f"mem:{number}",),
                sequence=now + number * DAY,
            ),
            SigningKey(bytes([number + 1]) * 32),
        )
        for number in range(4)
    ]

    def first(experience: Experience) -> SignedObject:
        return experience.order(offers, connected=(), environment=environment, now=0.0)[0]

    counts = [sum(first(Experience()) is offer for _ in range(1000)) for offer in [offers[3]]]
    assert 150 < counts[0] < 350
    known = Experience()
    known.answered(offers[1].signer)
    assert all(first(known) is offers[1] for _ in range(50))
    known.busy(offers[1].signer, until=5.0)
    assert all(first(known) is not offers[1] for _ in range(50))


async def test_a_proof_is_refused_after_any_change_of_one_byte() -> None:
    async with stage() as s, s.both() as (_, requester):
        result = await requester.invoke(NAME, QUESTION)
        _, record = await requester.calls.find(result.invocation.id.hex())
        data = await requester.calls.export(record)
    proof = verify_proof(data)
    assert proof.receipt is not None and proof.receipt.id == result.receipt.id
    assert proof.may_provide.allowed and proof.authority is None
    for place in range(len(data)):
        for change in (0x01, 0x80):
            with pytest.raises(InvalidError):
                verify_proof(data[:place] + bytes([data[place] ^ change]) + data[place + 1 :])


async def test_a_proof_with_the_descriptor_of_another_manifest_is_refused() -> None:

    async with stage() as s, s.both() as (provider, requester):
        result = await requester.invoke(NAME, QUESTION)
        other = await provider.publish("test/other", b"another descriptor")
        _, record = await requester.calls.find(result.invocation.id.hex())
    with pytest.raises(InvalidError, match="descriptor"):
        verify_proof(export_proof(record, b"another descriptor"))
    with pytest.raises(InvalidError, match="another capability"):
        verify_proof(export_proof(replace(record, manifest=other.data), b"another descriptor"))


async def test_a_full_disk_while_a_call_is_accepted_is_told_and_nothing_runs() -> None:
    async with stage() as s, s.both() as (provider, requester):

        async def full(*args: object, **options: object) -> None:
            raise LocalError("disk-full", "no room")

        put = provider._provider._journal.put
        provider._provider._journal.put = full
        with pytest.raises((LocalError, RemoteError)):
            await requester.invoke(NAME, QUESTION, deadline_in=600)
        assert not s.runs
        provider._provider._journal.put = put
        assert (await requester.invoke(NAME, QUESTION)).status == "completed"


async def test_somebody_who_repeats_a_call_does_not_keep_the_receipt_from_its_requester() -> None:
    async with stage() as s, s.both() as (provider, requester):
        s.close_gate()
        results = []

        async def invoke() -> None:
            results.append(await requester.invoke(NAME, QUESTION))

        with anyio.fail_after(8):  # sooner than the requester would ask again
            async with anyio.create_task_group() as group:
                group.start_soon(invoke)
                await until(lambda: bool(s.runs))
                await s.deliver_again(provider, await s.sent(), "elsewhere")
                s.gate.set()
        assert results[0].status == "completed"


async def test_a_disk_that_cannot_be_read_does_not_end_the_provider() -> None:
    async with stage() as s, s.both() as (provider, requester):
        store = s.homes["provider"].store
        get = store.get_object

        async def broken(id: ContentId):
            raise LocalError("store-failed", "the disk is gone")

        await requester.invoke(NAME, QUESTION)
        objects = await s.sent()
        store.get_object = broken
        await s.deliver_again(provider, objects)
        await anyio.sleep(0.05)
        store.get_object = get
        assert (await requester.invoke(NAME, QUESTION)).status == "completed"
