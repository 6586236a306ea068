"""Routes about delegations: grant, take back, list, explain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bnw.api.render import Json
from bnw.api.requests import (
    answer,
    bad_request,
    blamed_on,
    content_id_of,
    flag_of,
    identity_of,
    milliseconds_of,
    read_json_body,
    text_of,
    texts_of,
)
from bnw.identity.keys import did_key
from bnw.node.authority import DelegationView
from bnw.node.node import Node
from bnw.objects.authority import RIGHT_DELEGATE, RIGHT_INVOKE, RIGHT_PROVIDE, Caveats
from bnw.objects.signed import SignedObject
from bnw.wire.content_id import ContentId
from bnw.wire.limits import DELEGATION_LIFETIME, MAX_INTEGER, MAX_PAYLOAD

RIGHTS = (RIGHT_DELEGATE, RIGHT_INVOKE, RIGHT_PROVIDE)


def authority_routes(node: Node) -> list[Route]:
    async def delegate(request: Request) -> Response:
        body = await read_json_body(request)
        parent = text_of(body, "parent", "")
        rights = texts_of(body, "rights", most=len(RIGHTS))
        if any(right not in RIGHTS for right in rights):
            raise bad_request(f"known are {', '.join(RIGHTS)}", "rights")
        lifetime = body.get("lifetime_ms")
        if not parent and (not rights or lifetime is None):
            raise bad_request("a delegation without a parent needs rights and a lifetime", "rights")
        with blamed_on("delegation"):
            delegation = await node.authority.delegate(
                identity_of(text_of(body, "audience"), "audience"),
                rights=rights or None,
                lifetime=None
                if lifetime is None
                else milliseconds_of(body, "lifetime_ms", 1, most=DELEGATION_LIFETIME),
                caveats=await _caveats(node, body),
                parent=content_id_of(parent, "parent") if parent else None,
            )
        return answer(delegation_json(DelegationView(delegation, None)))

    async def revoke(request: Request) -> Response:
        id = content_id_of(text_of(await read_json_body(request), "delegation"), "delegation")
        with blamed_on("delegation"):
            revocation = await node.authority.revoke(id)
        return answer({"revocation_id": revocation.id.hex(), "delegation_id": id.hex()})

    async def delegations(request: Request) -> Response:
        views = await node.authority.delegations(mine=flag_of(request.query_params, "mine"))
        return answer({"delegations": [delegation_json(view) for view in views]})

    async def show(request: Request) -> Response:
        id = content_id_of(request.path_params["id"], "the delegation's id")
        known = {view.delegation.id: view for view in await node.authority.delegations()}
        chain = await node.authority.chain(id)
        return answer(
            {
                "chain": [
                    delegation_json(known.get(link.id) or DelegationView(link, None))
                    if isinstance(link, SignedObject)
                    else {"delegation_id": link.hex(), "missing": True}
                    for link in chain
                ]
            }
        )

    async def explain(request: Request) -> Response:
        parameters = request.query_params
        right = text_of(parameters, "right", RIGHT_INVOKE)
        if right not in {RIGHT_INVOKE, RIGHT_PROVIDE}:
            raise bad_request("invoke or provide is needed", "right")
        actor, provider = text_of(parameters, "actor", ""), text_of(parameters, "provider", "")
        leaf = text_of(parameters, "delegation", "")
        verdict = await node.authority.explain(
            await node.find(text_of(parameters, "reference")),
            right=right,
            actor=identity_of(actor, "actor") if actor else node.identity,
            provider=identity_of(provider, "provider") if provider else None,
            leaf=content_id_of(leaf, "delegation") if leaf else None,
            input_bytes=_number(parameters, "input_bytes", MAX_PAYLOAD, least=0),
        )
        return answer({**verdict.to_json(), "lines": verdict.lines()})

    return [
        Route("/v1/delegations", delegations),
        Route("/v1/delegations", delegate, methods=["POST"]),
        Route("/v1/delegations/revoke", revoke, methods=["POST"]),
        Route("/v1/delegations/explain", explain),
        Route("/v1/delegations/{id}", show),
    ]


async def _caveats(node: Node, body: Mapping[str, Any]) -> Caveats:
    reference, publisher = text_of(body, "capability", ""), text_of(body, "publisher", "")
    capability: ContentId | None = None
    if reference:
        capability = (await node.find(reference)).id
    return Caveats(
        capability=capability,
        max_calls=_number(body, "max_calls", MAX_INTEGER),
        max_calls_per_hour=_number(body, "max_calls_per_hour", MAX_INTEGER),
        max_input_bytes=_number(body, "max_input_bytes", MAX_PAYLOAD, least=0),
        publisher=identity_of(publisher, "publisher") if publisher else None,
    )


def _number(values: Mapping[str, Any], name: str, most: int, *, least: int = 1) -> int | None:
    value = values.get(name)
    if value is None:
        return None
    text = str(value)
    if not text.isascii() or not text.isdecimal() or not least <= int(text[:18]) <= most:
        raise bad_request(f"a whole number from {least} to {most:,} is needed", name)
    return int(text)


def delegation_json(view: DelegationView) -> Json:
    body = view.body
    caveats = body.caveats
    return {
        "delegation_id": view.delegation.id.hex(),
        "issuer": did_key(view.delegation.signer),
        "audience": did_key(body.audience),
        "rights": list(body.rights),
        "not_before": body.not_before,
        "expires": body.expires,
        "parent": None if body.parent is None else body.parent.hex(),
        "capability": None if caveats.capability is None else caveats.capability.hex(),
        "publisher": None if caveats.publisher is None else did_key(caveats.publisher),
        "max_calls": caveats.max_calls,
        "max_calls_per_hour": caveats.max_calls_per_hour,
        "max_input_bytes": caveats.max_input_bytes,
        "revoked_by": None if view.revoked_by is None else view.revoked_by.hex(),
    }
