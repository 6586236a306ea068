"""What a node tells about itself and its catalog: plain values for the API, the command line and embedding programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bnw.identity.keys import IdentityId
from bnw.invoke.descriptors import Description
from bnw.objects.catalog import CapabilityManifest
from bnw.objects.signed import SignedObject
from bnw.store.interface import StoreStatistics
from bnw.transport.interface import PeerId, PeerInfo
from bnw.wire.content_id import ContentId


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """A published capability and how many providers offer it now."""

    manifest: SignedObject
    providers: int

    @property
    def body(self) -> CapabilityManifest:
        assert isinstance(self.manifest.body, CapabilityManifest)
        return self.manifest.body


@dataclass(frozen=True, slots=True)
class CapabilityView:
    """All that a node can say about one capability. `description` is None for an opaque or absent descriptor."""

    manifest: SignedObject
    offers: tuple[SignedObject, ...]
    descriptor: bytes | None = field(repr=False)
    description: Description | None
    schemas: Mapping[ContentId, bytes] = field(repr=False)
    missing: tuple[ContentId, ...]
    """Linked blobs that no connected peer gave."""
    input_template: bytes | None

    @property
    def body(self) -> CapabilityManifest:
        assert isinstance(self.manifest.body, CapabilityManifest)
        return self.manifest.body


@dataclass(frozen=True, slots=True)
class NodeStatus:
    identity: IdentityId
    peer: PeerId
    network: str
    addresses: tuple[str, ...]
    peers: tuple[PeerInfo, ...]
    unreachable: Mapping[str, str]
    """Configured addresses that are not connected, and why."""
    catalog_objects: int
    store: StoreStatistics
    providing: tuple[ContentId, ...]
    started: int


@dataclass(frozen=True, slots=True)
class CallEnded:
    """An event: a call to this node came to its end."""

    invocation: ContentId
    requester: IdentityId
    capability: ContentId
    status: str
    code: str | None


@dataclass(frozen=True, slots=True)
class CatalogNews:
    """An event: a peer brought a catalog object that was not known here."""

    kind: str
    id: ContentId
    signer: IdentityId


NodeEvent = CallEnded | CatalogNews
