"""A capability that a node answers for, as its provider knows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from bnw.invoke.descriptors import DescriptorLimits
from bnw.invoke.handler import Handler
from bnw.invoke.policy import CallPolicy
from bnw.objects.signed import SignedObject
from bnw.wire.content_id import ContentId


@dataclass(frozen=True, slots=True)
class Provision:
    """`limits` is None for an opaque descriptor. `policy` gives the one that holds at the time it is asked."""

    manifest: SignedObject
    descriptor: bytes = field(repr=False)
    limits: DescriptorLimits | None
    schemas: Mapping[ContentId, bytes] = field(repr=False)
    handler: Handler
    policy: Callable[[], CallPolicy]
    idempotent: bool = False
    """Whether a call may run again if a crash interrupted it, or if nobody knows whether it has run."""
