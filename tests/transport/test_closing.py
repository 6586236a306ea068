"""Starting and closing a libp2p endpoint: ports, tasks, sockets, errors, and silence on the terminal."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading

import anyio
import psutil
import pytest
import trio
from worlds import ECHO, Listener, P2PWorld, SeededEnvironment, ask_echo, connect, echo

from bnw.transport.interface import Stream
from bnw.transport.p2p import P2PTransport
from bnw.wire.errors import LocalError

pytestmark = pytest.mark.anyio


def transport(listen: list[str], announce: tuple[str, ...] = ()) -> P2PTransport:
    return P2PTransport(seed=bytes(32), listen=listen, environment=SeededEnvironment(), announce=announce)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def test_it_listens_exactly_where_it_was_told() -> None:
    port = free_port()
    async with transport([f"/ip4/127.0.0.1/tcp/{port}"]) as node:
        assert node.addresses == (f"/ip4/127.0.0.1/tcp/{port}/p2p/{node.peer_id}",)
        listening = [c.laddr for c in psutil.Process().net_connections("tcp") if c.status == psutil.CONN_LISTEN]
        assert [tuple(address) for address in listening] == [("127.0.0.1", port)]


async def test_it_can_listen_at_several_addresses_and_over_ip6() -> None:
    async with transport(["/ip4/127.0.0.1/tcp/0", "/ip6/::1/tcp/0"]) as node, transport_of_another() as other:
        assert len(node.addresses) == 2
        for address in node.addresses:
            await other.dial(address)
            assert [info.addresses[0] for info in other.peers()] == [address]
            await other.disconnect(node.peer_id)


def transport_of_another() -> P2PTransport:
    return P2PTransport(seed=bytes([1]) * 32, listen=[], environment=SeededEnvironment(1))


async def test_it_need_not_listen_at_all() -> None:
    async with transport([]) as node:
        assert node.addresses == ()


async def test_a_wildcard_stands_for_the_addresses_of_this_machine() -> None:
    async with transport(["/ip4/0.0.0.0/tcp/0"]) as node, transport_of_another() as other:
        assert any(address.startswith("/ip4/127.0.0.1/tcp/") for address in node.addresses)
        assert not any("0.0.0.0" in address for address in node.addresses)
        await other.dial(node.addresses[0])


async def test_announced_addresses_replace_our_own() -> None:
    async with transport(["/ip4/127.0.0.1/tcp/0"], announce=("/dns4/example.org/tcp/4001",)) as node:
        assert node.addresses == (f"/dns4/example.org/tcp/4001/p2p/{node.peer_id}",)


async def test_the_peer_id_comes_from_the_seed_alone() -> None:
    async with transport([]) as node:
        # What other libp2p implementations make of the Ed25519 key whose seed is 32 zero bytes.
        assert node.peer_id == "12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN"


async def test_a_port_in_use_is_said_with_address_and_cure() -> None:
    async with transport(["/ip4/127.0.0.1/tcp/0"]) as node:
        address = node.addresses[0].rpartition("/p2p/")[0]
        with pytest.raises(LocalError) as caught:
            async with transport([address]):
                pass
    assert caught.value.code == "port-in-use"
    assert caught.value.place == address
    assert caught.value.cure is not None
    assert "/tcp/0" in caught.value.cure


@pytest.mark.parametrize(
    "address", ["nonsense", "/ip4/127.0.0.1/udp/1", "/dns4/localhost/tcp/0", "/ip4/203.0.113.7/tcp/0", "/ip4/127.0.0.1"]
)
async def test_an_address_that_cannot_be_listened_at_is_refused(address: str) -> None:
    with pytest.raises(LocalError) as caught:
        async with transport([address]):
            pass
    assert caught.value.code == "address"
    assert caught.value.place == address


async def test_when_one_address_fails_the_others_are_let_go() -> None:
    port = free_port()
    with pytest.raises(LocalError):
        async with transport([f"/ip4/127.0.0.1/tcp/{port}", "nonsense"]):
            pass
    async with transport([f"/ip4/127.0.0.1/tcp/{port}"]):
        pass


async def test_a_seed_of_the_wrong_size_is_refused() -> None:
    with pytest.raises(LocalError) as caught:
        P2PTransport(seed=b"short", listen=[], environment=SeededEnvironment())
    assert caught.value.code == "key"


async def test_closing_leaves_no_task_no_thread_no_socket_and_a_free_port() -> None:
    def tasks() -> int:
        return trio.lowlevel.current_statistics().tasks_living

    def threads() -> list[str]:
        # The test runner lets Trio wait for events in a thread of its own.
        return [thread.name for thread in threading.enumerate() if not thread.name.startswith("Trio thread")]

    port = free_port()
    tasks_before, threads_before = tasks(), threads()
    sockets_before = len(psutil.Process().net_connections("tcp"))
    for _ in range(3):
        async with transport([f"/ip4/127.0.0.1/tcp/{port}"]) as node, P2PWorld().endpoint("other") as other:
            node.serve(ECHO, echo)
            await Listener.at(node)
            await Listener.at(other)
            await connect(other, node)
            assert await ask_echo(other, node.peer_id, b"x") == b"x"
            stream = await other.open_stream(node.peer_id, ECHO)
            await stream.send(b"left open")
    assert tasks() == tasks_before
    assert threads() == threads_before
    sockets = [c for c in psutil.Process().net_connections("tcp") if c.status != psutil.CONN_TIME_WAIT]
    assert len(sockets) == sockets_before


async def test_closing_is_quick_even_with_a_peer_that_reads_nothing() -> None:
    async with P2PWorld().endpoint("deaf") as deaf:
        deaf.serve("/test/hold/1", lambda stream: anyio.sleep_forever())
        with anyio.fail_after(5):
            async with transport([]) as node, anyio.create_task_group() as sending:
                await node.dial(deaf.addresses[0])
                stream = await node.open_stream(deaf.peer_id, "/test/hold/1")
                sending.start_soon(stream.send, bytes(1_000_000))
                await anyio.sleep(0.05)
                sending.cancel_scope.cancel()


async def test_what_was_sent_just_before_closing_arrives() -> None:
    got = bytearray()
    async with P2PWorld().endpoint("reader") as reader:
        done = anyio.Event()

        async def read(stream: Stream) -> None:
            while piece := await stream.receive():
                got.extend(piece)
            done.set()

        reader.serve("/test/read/1", read)
        async with transport([]) as node:
            await node.dial(reader.addresses[0])
            stream = await node.open_stream(reader.peer_id, "/test/read/1")
            await stream.send(bytes(100_000))
            await stream.aclose()
        with anyio.fail_after(5):
            await done.wait()
    assert len(got) == 100_000


async def test_exceptions_of_the_body_leave_as_they_are_and_cancellation_works() -> None:
    with pytest.raises(KeyError):
        async with transport(["/ip4/127.0.0.1/tcp/0"]):
            raise KeyError("not a group")
    with anyio.move_on_after(0.1) as scope:
        async with transport(["/ip4/127.0.0.1/tcp/0"]):
            await anyio.sleep_forever()
    assert scope.cancelled_caught


def test_libp2p_writes_nothing_to_the_terminal() -> None:
    program = "import bnw.transport.p2p, logging; logging.getLogger('libp2p.x').error('noise'); print('done')"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (result.stdout, result.stderr) == ("done\n", "")


def test_the_contract_and_the_memory_network_do_not_import_libp2p() -> None:
    program = "import sys, bnw.transport.memory, bnw.transport.interface; print('libp2p' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout == "False\n"
