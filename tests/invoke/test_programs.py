"""Programs that misbehave: the call ends, nothing of them stays, and the receipt says what happened."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import anyio
import pytest

from bnw.identity.keys import IdentityId
from bnw.inbox.payload import Payload
from bnw.invoke.handlers import Answer, Call, HandlerFailure, ProgramHandler, ServiceHandler, python_handler
from bnw.wire.content_id import ContentId
from bnw.wire.errors import LocalError
from bnw.wire.limits import MIB

pytestmark = pytest.mark.anyio


def call(data: bytes = b"in", *, max_output: int = MIB, report=None) -> Call:
    return Call(
        ContentId(b"i" * 32),
        ContentId(b"c" * 32),
        IdentityId(bytes(32)),
        1,
        Payload(data, "text/plain"),
        max_output,
        **({} if report is None else {"report": report}),
    )


def program(code: str) -> ProgramHandler:
    return ProgramHandler([sys.executable, "-c", code], environment={"PATH": os.environ["PATH"]})


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


async def test_one_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    code = (
        "import os,signal,time,pathlib; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        f"pathlib.Path({str(file)!r}).write_text(str(os.getpid())); time.sleep(60)"
    )
    with anyio.move_on_after(10) as scope:
        async with anyio.create_task_group() as group:
            group.start_soon(program(code), call())
            while not file.exists() or not file.read_text():
                await anyio.sleep(0.02)
            began = anyio.current_time()
            group.cancel_scope.cancel()
    assert not scope.cancelled_caught
    assert 1.5 < anyio.current_time() - began < 5
    assert not is_alive(int(file.read_text()))


async def test_one_that_leaves_a_child_behind_is_over_when_it_ends_and_the_child_is_killed(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    code = (
        f"import subprocess; p=subprocess.Popen(['sleep','60']); open({str(file)!r},'w').write(str(p.pid)); print('x')"
    )
    with anyio.fail_after(10):
        assert (await program(code)(call())).data == b"x\n"
        while is_alive(int(file.read_text())):
            await anyio.sleep(0.02)


async def test_one_whose_child_leaves_the_group_is_over_when_it_ends(tmp_path: Path) -> None:
    code = "import subprocess; subprocess.Popen(['sleep','4'], start_new_session=True); print('x')"
    with anyio.fail_after(3.5):
        assert (await program(code)(call())).data == b"x\n"


async def test_one_that_writes_two_gibibytes_is_stopped_at_its_bound() -> None:
    code = "import os\nwhile True: os.write(1, b'x' * 65536)"
    with anyio.fail_after(10), pytest.raises(HandlerFailure) as caught:
        await program(code)(call(max_output=MIB))
    assert caught.value.code == "output-too-large"


async def test_one_that_closes_its_input_answers_all_the_same() -> None:
    code = "import os; os.close(0); print('answer')"
    with anyio.fail_after(10):
        assert (await program(code)(call(b"x" * MIB))).data == b"answer\n"


async def test_one_that_prints_invalid_utf_8_fails_with_readable_details() -> None:
    code = "import os,sys; os.write(2, b'\\xff\\xfe broken'); sys.exit(3)"
    with pytest.raises(HandlerFailure) as caught:
        await program(code)(call())
    assert caught.value.code == "program-exit"
    assert "broken" in caught.value.detail


async def test_progress_is_read_from_its_pipe_and_nonsense_in_it_changes_nothing() -> None:
    seen = []

    def report(stage: str, fraction: float | None = None, note: str | None = None) -> None:
        seen.append((stage, fraction, note))

    code = (
        "import os\nwith open(os.environ['BNW_PROGRESS'],'w') as p:\n"
        ' p.write(\'{"stage": "one", "fraction": 0.5}\\nnonsense\\n[]\\n{"stage": "two", "note": "n"}\\n\')'
    )
    await program(code)(call(report=report))
    assert seen == [("one", 0.5, None), ("two", None, "n")]


async def test_a_program_that_does_not_exist_is_a_failure_that_names_it_to_the_requester_alone() -> None:
    handler = ProgramHandler(["/nonexistent/program"], environment={})
    with pytest.raises(HandlerFailure) as caught:
        await handler(call())
    assert caught.value.code == "program-not-started"
    assert "/nonexistent" not in caught.value.message


async def test_a_cancelled_synchronous_function_is_told_to_stop() -> None:
    stopped = []

    def patient(told: Call) -> bytes:
        import time

        for _ in range(500):
            if told.stopping():
                stopped.append(True)
                break
            time.sleep(0.01)
        return b""

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(python_handler(patient), call())
            await anyio.sleep(0.1)
            group.cancel_scope.cancel()
    assert stopped == [True]


async def _serve_once(answer: bytes, received: list[bytes], *, task_status) -> None:
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    done = anyio.Event()

    async def handle(stream) -> None:
        async with stream:
            received.append(await stream.receive())
            if not received[-1].endswith(b"in"):
                received.append(await stream.receive())
            await stream.send(answer)
        done.set()

    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, handle)
        task_status.started(port)
        await done.wait()
        group.cancel_scope.cancel()


@pytest.mark.parametrize(("status", "code"), [("200 OK", None), ("500 Oh", "service-status")])
async def test_a_service_on_this_machine_answers_over_http(status: str, code: str | None) -> None:
    received: list[bytes] = []
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 3\r\n\r\n"
    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            port = await group.start(_serve_once, head.encode() + b"out", received)
            handler = ServiceHandler(f"http://127.0.0.1:{port}/call")
            if code is None:
                assert await handler(call()) == Answer(b"out", "text/plain")
            else:
                with pytest.raises(HandlerFailure) as caught:
                    await handler(call())
                assert caught.value.code == code
    assert b"bnw-requester: did:key:" in b"".join(received).lower()


@pytest.mark.parametrize("url", ["http://example.com/", "https://127.0.0.1/", "http://u@127.0.0.1/", "file:///etc"])
async def test_a_service_elsewhere_is_refused(url: str) -> None:
    with pytest.raises(LocalError) as caught:
        ServiceHandler(url)
    assert caught.value.code == "url"
