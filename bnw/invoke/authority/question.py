"""What is asked: may this identity use this right on this capability? And on whose word.

The root of authority, the identity that must have signed the first link of a chain, depends on the right:

- **provide**: the publisher, and nobody else. Its manifest says how: only itself (`publisher`), whoever it delegates to
  (`delegated`), or everybody (`anyone`).
- **invoke**: the provider's policy comes first, because it is the provider's machine that does the work. Without a
  policy that accepts delegations there is no root at all, and no chain helps. With one, two words count: the
  provider's own, and the publisher's, so that one delegation from a publisher is good at each of its providers, which
  is what a publisher needs to hand out access to what others run for it. A provider that wants to hear only its own
  word passes only itself as a root.

A root needs no delegation: whoever may grant a right has it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from bnw.identity.keys import IdentityId
from bnw.objects.authority import RIGHT_INVOKE, RIGHT_PROVIDE
from bnw.objects.catalog import PROVIDE_ANYONE, PROVIDE_DELEGATED, CapabilityManifest
from bnw.objects.signed import SignedObject
from bnw.wire.content_id import ContentId


@dataclass(frozen=True, slots=True)
class Question:
    """May `actor` use `right` on `capability` (a manifest id) of `publisher`?

    `anyone` and `listed` may without a chain; `roots` may too, and may have granted it to others. `input_bytes` is the
    size of the call's input, None while it is not known: then no limit on it refuses, and the verdict says the limit.
    """

    right: str
    actor: IdentityId
    capability: ContentId
    publisher: IdentityId
    roots: frozenset[IdentityId]
    anyone: bool = False
    listed: frozenset[IdentityId] = frozenset()
    input_bytes: int | None = None


class InvokePolicy(Protocol):
    """What a provider's policy says about who may call. `delegated`: chains from provider or publisher count."""

    @property
    def anyone(self) -> bool: ...
    @property
    def listed(self) -> Collection[IdentityId]: ...
    @property
    def delegated(self) -> bool: ...


def may_invoke(
    manifest: SignedObject,
    *,
    requester: IdentityId,
    provider: IdentityId,
    policy: InvokePolicy,
    input_bytes: int | None = None,
) -> Question:
    """A provider asks whether it may run a call."""
    return Question(
        right=RIGHT_INVOKE,
        actor=requester,
        capability=manifest.id,
        publisher=manifest.signer,
        roots=frozenset({provider, manifest.signer}) if policy.delegated else frozenset(),
        anyone=policy.anyone,
        listed=frozenset(policy.listed),
        input_bytes=input_bytes,
    )


def holds_invoke_right(
    manifest: SignedObject, *, requester: IdentityId, provider: IdentityId, input_bytes: int | None = None
) -> Question:
    """A requester, who cannot know the provider's policy, asks which chain would do if delegations count there."""
    return Question(
        right=RIGHT_INVOKE,
        actor=requester,
        capability=manifest.id,
        publisher=manifest.signer,
        roots=frozenset({provider, manifest.signer}),
        input_bytes=input_bytes,
    )


def may_provide(manifest: SignedObject, *, provider: IdentityId) -> Question:
    """Anybody asks whether a provider answers with the publisher's leave."""
    assert isinstance(manifest.body, CapabilityManifest)
    provide = manifest.body.provide
    return Question(
        right=RIGHT_PROVIDE,
        actor=provider,
        capability=manifest.id,
        publisher=manifest.signer,
        roots=frozenset({manifest.signer}) if provide == PROVIDE_DELEGATED else frozenset(),
        anyone=provide == PROVIDE_ANYONE,
        listed=frozenset({manifest.signer}),
    )
