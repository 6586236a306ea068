"""What must be in order before a node answers calls of a capability."""

from __future__ import annotations

from collections.abc import Callable

from bnw.identity.keys import IdentityId
from bnw.invoke.handlers import Function, Handler, python_handler
from bnw.invoke.policy import CallPolicy
from bnw.invoke.provision import Provision
from bnw.invoke.resolve import Catalog
from bnw.node.descriptors import DescriptorLoader
from bnw.objects.signed import SignedObject
from bnw.wire.errors import LocalError

Policy = CallPolicy | Callable[[], CallPolicy] | None


async def prepare_provision(
    manifest: SignedObject,
    reference: str,
    handler: Handler | Function,
    *,
    identity: IdentityId,
    catalog: Catalog,
    descriptors: DescriptorLoader,
    policy: Policy,
    idempotent: bool,
) -> Provision:
    """Everything that answering calls of `manifest` needs; `reference` is what the caller called it.

    Raises `LocalError`: `may-not-provide` or `invalid-descriptor`; `RemoteError` if the descriptor cannot be had.
    """
    if not await catalog.may_provide(manifest, identity):
        raise LocalError(
            "may-not-provide",
            "the publisher does not let this identity provide the capability",
            place=reference,
            cure="ask the publisher for a delegation, or publish a capability of your own",
        )
    loaded = await descriptors.load(manifest)
    if loaded.missing or (loaded.description is not None and loaded.description.errors):
        raise LocalError(
            "invalid-descriptor",
            "the descriptor is not valid or a blob that it links to cannot be had",
            place=reference,
            cure="`bnw catalog-inspect` shows what is wrong with it",
        )
    given = CallPolicy() if policy is None or callable(policy) else policy
    return Provision(
        manifest=manifest,
        descriptor=loaded.data,
        limits=None if loaded.description is None else loaded.description.limits,
        schemas=loaded.linked,
        handler=python_handler(handler),
        policy=policy if callable(policy) else lambda: given,
        idempotent=idempotent,
    )
