"""Inputs and outputs of more than fits in memory: files at both ends, chunks in the store between them."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from call_stage import NAME, Stage, stage

from bnw.blobs.offload import inline
from bnw.inbox.payload import Payload, PayloadFile, StoredPayload
from bnw.invoke.handlers import Answer, Call, Handler, ProgramHandler, ServiceHandler, python_handler
from bnw.invoke.policy import CallPolicy
from bnw.invoke.requester import CallResult
from bnw.invoke.workspace import Workspace
from bnw.node.node import Node
from bnw.wire.content_id import ContentId
from bnw.wire.errors import BnwError, InvalidError, LocalError, RemoteError
from bnw.wire.limits import MAX_PAYLOAD_IN_MEMORY, MIB, MINUTE

pytestmark = pytest.mark.anyio

SIZE = MAX_PAYLOAD_IN_MEMORY + MIB + 1
LARGE = CallPolicy(anyone=True, max_input_bytes=64 * MIB, max_output_bytes=64 * MIB)
PROGRAM = """
import os, shutil, sys
with open(os.environ["BNW_INPUT_FILE"], "rb") as named:
    assert named.read(100) == sys.stdin.buffer.read(100)
    named.seek(0)
    shutil.copyfileobj(named, sys.stdout.buffer)
"""


@pytest.fixture
def large(tmp_path: Path) -> PayloadFile:
    path = tmp_path / "question"
    path.write_bytes(hashlib.shake_128(b"large").digest(SIZE))
    return PayloadFile(path, SIZE, "application/octet-stream", "question")


@asynccontextmanager
async def disk_stage(tmp_path: Path) -> AsyncIterator[Stage]:
    async with stage() as s:
        s.disk = tmp_path / "disk"
        s.disk.mkdir()
        yield s


async def received(requester: Node, output: object, to: Path) -> bytes:
    assert isinstance(output, StoredPayload)
    await requester.calls.outputs.save(output, to)
    return to.read_bytes()


def sealed_bytes(s: Stage, name: str) -> int:
    return s.homes[name].store._blob_bytes


def no_folders(s: Stage, name: str) -> bool:
    assert s.disk is not None
    return not (s.disk / name).exists() or not list((s.disk / name).iterdir())


async def ask(
    tmp_path: Path, payload: Payload | PayloadFile, handler: Handler, policy: CallPolicy = LARGE, **options: object
) -> CallResult:
    async with disk_stage(tmp_path) as s, s.both(policy, handler=handler) as (_, requester):
        result = await requester.invoke(NAME, payload, **options)  # type: ignore[arg-type]
        assert no_folders(s, "provider")
        return result


async def copy_to_its_folder(call: Call) -> Answer:
    assert isinstance(call.input, PayloadFile) and call.folder is not None
    assert call.input.path.stat().st_size == call.input.size == SIZE
    assert call.folder.path.stat().st_mode & 0o777 == 0o700
    output = call.folder.path / "mine"
    await anyio.to_thread.run_sync(shutil.copyfile, call.input.path, output)
    return Answer(file=output)


def copy_from_a_thread(call: Call) -> Answer:
    assert isinstance(call.input, PayloadFile) and call.folder is not None
    return Answer(file=Path(shutil.copyfile(call.input.path, call.folder.path / "mine")))


async def echo_server(*, task_status: anyio.abc.TaskStatus[int]) -> None:
    """Sends back what it is sent, once all of it has come."""
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")

    async def handle(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            data = b""
            while b"\r\n\r\n" not in data:
                data += await stream.receive()
            head, _, body = data.partition(b"\r\n\r\n")
            assert f"content-length: {SIZE}".encode() in head.lower()
            pieces = [body]
            while sum(map(len, pieces)) < SIZE:
                pieces.append(await stream.receive())
            await stream.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % SIZE)
            for piece in pieces:
                await stream.send(piece)

    async with listener:
        task_status.started(listener.extra(anyio.abc.SocketAttribute.local_port))
        await listener.serve(handle)


@pytest.mark.parametrize("kind", ["async function", "function", "program", "service"])
async def test_every_kind_of_handler_takes_and_gives_files(tmp_path: Path, large: PayloadFile, kind: str) -> None:
    async with disk_stage(tmp_path) as s, anyio.create_task_group() as group:
        handler: Handler
        match kind:
            case "async function":
                handler = copy_to_its_folder
            case "function":
                handler = python_handler(copy_from_a_thread)
            case "program":
                handler = ProgramHandler([sys.executable, "-c", PROGRAM], environment={"PATH": os.environ["PATH"]})
            case _:
                port = await group.start(echo_server)
                handler = ServiceHandler(f"http://127.0.0.1:{port}/")
        async with s.both(LARGE, handler=handler) as (_, requester):
            result = await requester.invoke(NAME, large, max_output=SIZE)
            assert (result.status, result.problem) == ("completed", None)
            assert await received(requester, result.output, tmp_path / "answer") == large.path.read_bytes()
            assert no_folders(s, "provider")
            # The provider keeps the sealed output, for a requester that comes back for it; the sealed input is of no
            # use to anybody any more.
            assert SIZE < sealed_bytes(s, "provider") < 1.5 * SIZE
        group.cancel_scope.cancel()


async def test_a_large_output_goes_when_it_is_let_go_and_comes_again_when_it_is_waited_for(
    tmp_path: Path, large: PayloadFile
) -> None:
    async with disk_stage(tmp_path) as s, s.both(LARGE, handler=copy_to_its_folder) as (_, requester):
        result = await requester.invoke(NAME, large, max_output=SIZE)
        assert isinstance(result.output, StoredPayload)
        before = sealed_bytes(s, "requester")
        await requester.calls.outputs.let_go(result.output)
        assert sealed_bytes(s, "requester") <= before - SIZE
        with pytest.raises(BnwError):
            await requester.calls.outputs.save(result.output, tmp_path / "gone")
        assert not (tmp_path / "gone").exists()

        steps: list[str] = []
        again = await requester.calls.wait(result.id, lambda step, details: steps.append(step), max_output=SIZE)
        assert await received(requester, again.output, tmp_path / "answer") == large.path.read_bytes()
        assert "fetching" in steps
        assert result.receipt.id == again.receipt.id


async def test_a_call_that_is_signed_again_for_its_time_still_has_its_input(tmp_path: Path, large: PayloadFile) -> None:
    async with disk_stage(tmp_path) as s:
        s.homes["requester"].environment.offset = -4 * MINUTE
        async with s.both(LARGE, handler=copy_to_its_folder) as (_, requester):
            result = await requester.invoke(NAME, large, max_output=SIZE)
            assert (result.status, result.code) == ("completed", None)
            assert len(await requester.calls.all()) == 2


async def test_progress_of_sealing_is_told_in_bytes(tmp_path: Path, large: PayloadFile) -> None:
    steps: list[tuple[str, dict[str, str]]] = []
    result = await ask(tmp_path, large, says_ok, on_step=lambda step, details: steps.append((step, dict(details))))
    assert result.status == "completed"
    sealing = [int(details["done"]) for step, details in steps if step == "sealing"]
    assert sealing == sorted(sealing) and sealing[-1] == SIZE


async def says_ok(call: Call) -> Answer:
    return Answer(b"ok", "text/plain")


async def test_a_provider_takes_no_large_input_that_neither_descriptor_nor_policy_speaks_of(
    tmp_path: Path, large: PayloadFile
) -> None:
    result = await ask(tmp_path, large, copy_to_its_folder, CallPolicy(anyone=True))
    assert (result.status, result.code) == ("rejected", "too-large")


async def test_a_policy_bounds_the_input_before_any_of_it_is_fetched(tmp_path: Path, large: PayloadFile) -> None:
    policy = CallPolicy(anyone=True, max_input_bytes=SIZE - 1)
    async with disk_stage(tmp_path) as s, s.both(policy, handler=copy_to_its_folder) as (_, requester):
        result = await requester.invoke(NAME, large)
        assert result.status == "rejected"
        assert sealed_bytes(s, "provider") < MIB


async def test_a_handler_that_asks_for_bytes_fails_with_a_reason(tmp_path: Path, large: PayloadFile) -> None:
    async def reads(call: Call) -> Answer:
        return Answer(call.data)

    result = await ask(tmp_path, large, reads)
    assert (result.status, result.code) == ("failed", "input-too-large")


async def test_a_node_without_a_disk_refuses_what_does_not_fit_in_memory(tmp_path: Path, large: PayloadFile) -> None:
    async with stage() as s, s.both(LARGE) as (_, requester):
        result = await requester.invoke(NAME, large)
        assert (result.status, result.code) == ("rejected", "too-large")


async def test_an_output_that_may_not_be_so_large_fails_at_the_provider(tmp_path: Path, large: PayloadFile) -> None:
    policy = CallPolicy(anyone=True, max_input_bytes=SIZE, max_output_bytes=SIZE - 1)
    result = await ask(tmp_path, large, copy_to_its_folder, policy, max_output=SIZE)
    assert (result.status, result.code) == ("failed", "output-too-large")


async def test_a_requester_takes_no_more_than_it_said_and_can_change_its_mind(
    tmp_path: Path, large: PayloadFile
) -> None:
    async with disk_stage(tmp_path) as s, s.both(LARGE, handler=copy_to_its_folder) as (_, requester):
        with pytest.raises(RemoteError) as caught:
            await requester.invoke(NAME, large)
        assert caught.value.code == "too-large" and "--max-output" in str(caught.value.cure)
        assert sealed_bytes(s, "requester") < MIB, "nothing of the output, and no more of the input"
        [(id, _)] = await requester.calls.all()
        result = await requester.calls.wait(id, lambda step, details: None, max_output=SIZE)
        assert await received(requester, result.output, tmp_path / "answer") == large.path.read_bytes()


@pytest.mark.parametrize("fault", ["missing", "a directory"])
async def test_an_output_file_that_cannot_be_read_is_the_handlers_fault(tmp_path: Path, fault: str) -> None:
    async def answers(call: Call) -> Answer:
        assert call.folder is not None
        return Answer(file=call.folder.path / "missing" if fault == "missing" else call.folder.path)

    result = await ask(tmp_path, Payload(b"?", "text/plain"), answers)
    assert (result.status, result.code) == ("failed", "output-unreadable")
    assert str(tmp_path) not in str(result.problem), "paths of the provider are its own business"


async def test_an_output_file_that_fits_in_memory_is_an_output_like_any_other(tmp_path: Path) -> None:
    async def answers(call: Call) -> Answer:
        assert call.folder is not None
        path = call.folder.path / "small"
        path.write_bytes(b"small")
        return Answer(media_type="text/plain", file=path)

    result = await ask(tmp_path, Payload(b"?", "text/plain"), answers)
    assert result.output == Payload(b"small", "text/plain")


async def test_a_file_that_changes_while_it_is_sealed_is_not_sent(tmp_path: Path, large: PayloadFile) -> None:
    async with disk_stage(tmp_path) as s, s.both(LARGE, handler=copy_to_its_folder) as (_, requester):
        os.truncate(large.path, SIZE - MIB)
        with pytest.raises(BnwError) as caught:
            await requester.invoke(NAME, large)
        assert str(large.path) in str(caught.value)
        assert not s.runs and not await requester.calls.all()


async def test_a_damaged_chunk_of_an_output_leaves_no_file(tmp_path: Path, large: PayloadFile) -> None:
    async with disk_stage(tmp_path) as s, s.both(LARGE, handler=copy_to_its_folder) as (_, requester):
        result = await requester.invoke(NAME, large, max_output=SIZE)
        assert isinstance(result.output, StoredPayload)
        blobs = s.homes["requester"].store._blobs
        last = result.output.manifest.body.chunks[-1]
        blobs[last] = bytes(len(blobs[last]))
        with pytest.raises(InvalidError):
            await requester.calls.outputs.save(result.output, tmp_path / "answer")
        assert not [path for path in tmp_path.iterdir() if "answer" in path.name]


async def test_what_a_crash_has_left_of_calls_is_removed_at_the_next_start(tmp_path: Path) -> None:
    left = tmp_path / "running" / "0123"
    left.mkdir(parents=True)
    (left / "input").write_bytes(b"plain")
    workspace = Workspace(tmp_path / "running", inline)
    await workspace.clear()
    assert not left.exists()
    await workspace.clear()  # nothing there is no fault

    (tmp_path / "no directory").write_bytes(b"")
    with pytest.raises(LocalError) as caught:
        await Workspace(tmp_path / "no directory", inline).clear()
    assert str(tmp_path) in str(caught.value)


async def test_a_folder_is_made_only_when_a_call_needs_one(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "running", inline)
    async with workspace.folder(ContentId(bytes(32))):
        assert not (tmp_path / "running").exists()
    async with workspace.folder(ContentId(bytes(32))) as folder:
        (folder.path / "file").write_bytes(b"plain")
        (folder.path / "more").mkdir()
    assert not list((tmp_path / "running").iterdir())
