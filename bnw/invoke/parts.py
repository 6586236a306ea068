"""What both sides of a call work with: one identity's keys, and the parts of its node."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bnw.blobs.fetcher import BlobFetcher
from bnw.blobs.offload import Offload, inline
from bnw.identity.inbox_keys import InboxKey
from bnw.identity.keys import SigningKey
from bnw.inbox.delivery import Courier
from bnw.inbox.post import Post
from bnw.invoke.authority.book import DelegationBook
from bnw.invoke.descriptors import DescriptorPlugins
from bnw.invoke.resolve import Catalog
from bnw.invoke.workspace import Workspace
from bnw.store.interface import Store
from bnw.transport.interface import Transport
from bnw.wire.environment import Environment


@dataclass(frozen=True, slots=True)
class CallParts:
    """`inbox_keys` gives all private inbox keys that are kept at the time it is called, the newest last.

    Without a `workspace`, as in a simulation, payloads are at most as large as fits in memory.
    """

    key: SigningKey
    inbox_keys: Callable[[], tuple[InboxKey, ...]]
    catalog: Catalog
    store: Store
    transport: Transport
    fetcher: BlobFetcher
    plugins: DescriptorPlugins
    environment: Environment
    courier: Courier
    post: Post
    book: DelegationBook
    offload: Offload = inline
    workspace: Workspace | None = None
