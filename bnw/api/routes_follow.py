"""Routes about what the node follows: follow, unfollow, list."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bnw.api.render import Json
from bnw.api.requests import answer, blamed_on, milliseconds_of, read_json_body, text_of
from bnw.api.routes_catalog import LONGEST_PATIENCE
from bnw.identity.keys import did_key
from bnw.node.followed import FollowedCapability, FollowView
from bnw.node.node import DEFAULT_PATIENCE, Node


def follow_routes(node: Node) -> list[Route]:
    async def follows(request: Request) -> Response:
        return answer({"follows": [follow_json(view) for view in node.follows()]})

    async def follow(request: Request) -> Response:
        body = await read_json_body(request)
        reference = text_of(body, "reference")
        patience = milliseconds_of(body, "patience_ms", int(DEFAULT_PATIENCE * 1000), most=LONGEST_PATIENCE)
        with blamed_on("reference"):
            view = await node.follow(reference, patience=patience / 1000)
        return answer(follow_json(view))

    async def unfollow(request: Request) -> Response:
        reference = text_of(await read_json_body(request), "reference")
        with blamed_on("reference"):
            view = await node.unfollow(reference)
        return answer(follow_json(view))

    return [
        Route("/v1/follows", follows),
        Route("/v1/follows", follow, methods=["POST"]),
        Route("/v1/follows/end", unfollow, methods=["POST"]),
    ]


def follow_json(view: FollowView) -> Json:
    return {
        "publisher": did_key(view.follow.publisher),
        "name": view.follow.name,
        "since": view.follow.since,
        "capabilities": [_capability_json(capability) for capability in view.capabilities],
        "left_out": view.left_out,
    }


def _capability_json(capability: FollowedCapability) -> Json:
    manifest, whole = capability.manifest, capability.whole_manifest
    return {
        "name": capability.name,
        "state": capability.state,
        "manifest_id": None if manifest is None else manifest.id.hex(),
        "whole_manifest_id": None if whole is None else whole.hex(),
        "blobs": [id.hex() for id in capability.blobs],
        "attempts": capability.attempts,
        "problem": capability.problem,
    }
