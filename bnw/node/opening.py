"""Puts a node together from real parts: a home directory, SQLite, libp2p, the system's clock and randomness."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import anyio.to_thread

from bnw.blobs.offload import worker_threads
from bnw.identity.keystore import Keystore, load_keystore, new_keystore, save_keystore
from bnw.invoke.descriptors import DescriptorPlugins
from bnw.invoke.workspace import Workspace
from bnw.node.configuration import Configuration, load_configuration, write_configuration
from bnw.node.environment import SystemEnvironment
from bnw.node.home import Home
from bnw.node.keyring import KeyRing
from bnw.node.node import Node
from bnw.store.sqlite import SqliteStore
from bnw.sync.checking import verify_in_threads
from bnw.wire.errors import ExitStatus, LocalError


def initialise_home(
    home: Home, *, passphrase: str | None = None, configuration: Configuration | None = None
) -> Keystore:
    """Make a home with new keys. Raises `LocalError`: `home`, `home-exists` or `write-failed`; overwrites nothing."""
    home.create()
    if home.keystore.exists():
        raise LocalError(
            "home-exists",
            "there is a keystore here already; it was not touched",
            place=str(home.path),
            cure="use it, or choose another home with --home",
            exit_status=ExitStatus.USAGE,
        )
    environment = SystemEnvironment()
    keystore = new_keystore(environment)
    is_new = not home.configuration.exists()
    if is_new:
        write_configuration(home.configuration, configuration or Configuration())
    try:
        save_keystore(home.keystore, keystore, environment, passphrase=passphrase)
    except BaseException:
        # A home is there wholly or not at all, so that making it can simply be tried again.
        if is_new:
            home.configuration.unlink(missing_ok=True)
        raise
    return keystore


@asynccontextmanager
async def open_node(
    home: Home,
    *,
    passphrase: str | None = None,
    configuration: Configuration | None = None,
    plugins: DescriptorPlugins | None = None,
) -> AsyncIterator[Node]:
    """A running node on `home`, with the home's configuration unless another is given. Needs the trio backend.

    Raises `LocalError`: `home-missing`, `home-in-use`, those of the keystore, the configuration and the store,
    `port-in-use` or `address`.
    """
    configuration = configuration or load_configuration(home.configuration)
    environment = SystemEnvironment(clock_offset=configuration.clock_offset_ms)
    with home.locked():
        keystore = await anyio.to_thread.run_sync(lambda: load_keystore(home.keystore, passphrase=passphrase))

        async def save(changed: Keystore) -> None:
            await anyio.to_thread.run_sync(
                lambda: save_keystore(home.keystore, changed, environment, passphrase=passphrase)
            )

        # These take most of a second, and what is wrong above need not wait for them.
        from bnw.transport.p2p import P2PTransport
        from bnw.transport.p2p.addresses import parse_dial_address

        for address in configuration.peers:
            # A peer that is away may come back; an address that cannot be one never will.
            parse_dial_address(address)
        offload = worker_threads()
        workspace = Workspace(home.workspace, offload)
        await workspace.clear()
        keys = KeyRing(keystore, environment, save=save)
        async with (
            SqliteStore.open(home.store) as store,
            P2PTransport(
                seed=keys.transport_seed,
                listen=configuration.listen,
                announce=configuration.announce,
                environment=environment,
            ) as transport,
            Node(
                keys=keys,
                store=store,
                transport=transport,
                environment=environment,
                configuration=configuration,
                plugins=plugins,
                verify=verify_in_threads(),
                offload=offload,
                workspace=workspace,
            ).running() as node,
        ):
            yield node
