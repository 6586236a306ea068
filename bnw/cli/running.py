"""`bnw run`: the node process itself. The only command that imports libp2p."""

from __future__ import annotations

import os
import signal
import sys

import anyio

from bnw.api.daemon import node_served
from bnw.cli.session import Session
from bnw.cli.tables import facts
from bnw.identity.keys import did_key
from bnw.node.configuration import Configuration
from bnw.transport.tasks import background_tasks

DISCARDED_AT_ONCE = 4096


def run_node(
    session: Session, configuration: Configuration, passphrase: str | None, *, while_stdin_is_open: bool
) -> None:
    """Run until SIGINT or SIGTERM, or until standard input ends. Raises `LocalError` as `node_served` does."""
    anyio.run(_run, session, configuration, passphrase, while_stdin_is_open, backend="trio")


async def _run(
    session: Session, configuration: Configuration, passphrase: str | None, while_stdin_is_open: bool
) -> None:
    async with background_tasks() as tasks:
        ended = anyio.Event()
        await tasks.start(_wait_for_signal, ended)
        if while_stdin_is_open:
            tasks.start_soon(_wait_for_end_of_input, ended)
        async with node_served(session.home, configuration, passphrase=passphrase) as node:
            status = await node.status()
            value = {
                "ready": True,
                "identity": did_key(status.identity),
                "peer": status.peer,
                "addresses": list(status.addresses),
                "home": str(session.home.path),
                "process": os.getpid(),
            }
            pairs = [("identity", value["identity"]), ("home", value["home"])]
            pairs += [("address", address) for address in status.addresses]
            session.show(value, lambda: [*facts((label, str(text)) for label, text in pairs), "ready; Ctrl-C ends it"])
            sys.stdout.flush()
            await ended.wait()


async def _wait_for_signal(ended: anyio.Event, *, task_status: anyio.abc.TaskStatus[None]) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
        task_status.started()
        async for _ in signals:
            ended.set()
            return


async def _wait_for_end_of_input(ended: anyio.Event) -> None:
    descriptor = sys.stdin.fileno()
    while True:
        await anyio.wait_readable(descriptor)
        if not os.read(descriptor, DISCARDED_AT_ONCE):
            ended.set()
            return
